/* The script: everything that is sent, as bench/script.py has written it. */
#include "server.h"
#include <stdio.h>
#include <stdlib.h>

Face faces[FACES];
Blob words[TICKS], ids, models;
Unary unary[MAX_UNARY];
uint32_t unaries;

static Blob take(FILE *file) {
    uint32_t size;
    if (fread(&size, 4, 1, file) != 1) fail("script");
    uint8_t *data = malloc(size + 1);
    if (fread(data, 1, size, file) != size) fail("script");
    return (Blob){data, size};
}

void read_script(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) fail(path);
    for (int i = 0; i < TICKS; i++) words[i] = take(file);
    ids = take(file);
    for (int i = 0; i < FACES; i++)
        faces[i] = (Face){take(file), take(file), take(file), take(file), take(file), take(file)};
    models = take(file);
    for (unaries = 0; unaries < MAX_UNARY; unaries++) {
        Blob plain = take(file);
        if (!plain.size) break;
        Blob huffman = take(file);
        unary[unaries] = (Unary){plain, huffman, take(file)};
    }
    fclose(file);
}
