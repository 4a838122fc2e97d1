/* The bench's fake model server, compiled: what it speaks and how its script is laid out is told in bench/script.py.
 *
 *   upstream SCRIPT GRPC_PORT HTTP_PORT
 *
 * One thread, one timer for all streams, one write per connection and wake-up. Requests are not understood, only seen to
 * be whole: how many tokens they get, and when, is what the last POST /cadence/... said.
 */
#define _GNU_SOURCE
#include "server.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

static int poller;

void fail(const char *what) { perror(what); exit(1); }

void append(Buffer *buffer, const void *data, size_t size) {
    if (buffer->size + size > buffer->room) {
        buffer->room = 2 * (buffer->size + size);
        buffer->data = realloc(buffer->data, buffer->room);
        if (!buffer->data) fail("realloc");
    }
    if (size) memcpy(buffer->data + buffer->size, data, size);
    buffer->size += size;
}

void append_blob(Buffer *buffer, Blob blob) { append(buffer, blob.data, blob.size); }

static void drop(Connection *connection) {
    for (Stream *stream = connection->streams, *next; stream; stream = next) {
        next = stream->next;
        stream->connection = NULL;
        if (!stream->called) free(stream);
    }
    close(connection->fd);
    free(connection->in.data);
    free(connection->out.data);
    free(connection);
}

int flush(Connection *connection) {
    Buffer *out = &connection->out;
    while (out->size) {
        ssize_t written = send(connection->fd, out->data, out->size, MSG_NOSIGNAL);
        if (written < 0 && errno != EAGAIN) { drop(connection); return 0; }
        if (written < 0) break;
        memmove(out->data, out->data + written, out->size - written);
        out->size -= written;
    }
    if (connection->waits != (out->size > 0)) {
        connection->waits = out->size > 0;
        struct epoll_event event = {EPOLLIN | (connection->waits ? EPOLLOUT : 0), {.ptr = connection}};
        epoll_ctl(poller, EPOLL_CTL_MOD, connection->fd, &event);
    }
    return 1;
}

static int listen_on(int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), yes = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) || listen(fd, 1024)) fail("listen");
    return fd;
}

static void greet(int listener, int http1) {
    int fd, yes = 1;
    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
        Connection *connection = calloc(1, sizeof *connection);
        connection->fd = fd, connection->http1 = http1, connection->window = connection->initial_window = 65535;
        struct epoll_event event = {EPOLLIN, {.ptr = connection}};
        epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event);
        if (http1) continue;
        greet_http2(connection);
        flush(connection);
    }
}

static void receive(Connection *connection) {
    static uint8_t bytes[READ_SIZE];
    ssize_t size;
    while ((size = recv(connection->fd, bytes, sizeof bytes, 0)) > 0) {
        append(&connection->in, bytes, size);
        size_t used;
        while (connection->in.size && (used = connection->http1 ? read_http1(connection) : read_http2(connection))) {
            memmove(connection->in.data, connection->in.data + used, connection->in.size - used);
            connection->in.size -= used;
        }
        if (size < (ssize_t)sizeof bytes) break;
    }
    if (size == 0 || (size < 0 && errno != EAGAIN)) drop(connection);
    else flush(connection);
    set_timer();
}

int main(int argc, char **argv) {
    if (argc != 4) return fprintf(stderr, "usage: upstream SCRIPT GRPC_PORT HTTP_PORT\n"), 2;
    read_script(argv[1]);
    poller = epoll_create1(0);
    timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    int grpc = listen_on(atoi(argv[2])), http = listen_on(atoi(argv[3]));
    int *own[] = {&timer, &grpc, &http};
    for (int i = 0; i < 3; i++) {
        struct epoll_event event = {EPOLLIN, {.ptr = own[i]}};
        epoll_ctl(poller, EPOLL_CTL_ADD, *own[i], &event);
    }
    for (;;) {
        /* One at a time: an event may drop a connection that a later one names. */
        struct epoll_event event;
        if (epoll_wait(poller, &event, 1, -1) < 1) continue;
        uint64_t expirations;
        if (event.data.ptr == &timer) {
            if (read(timer, &expirations, 8) == 8) tick();
        } else if (event.data.ptr == &grpc) greet(grpc, 0);
        else if (event.data.ptr == &http) greet(http, 1);
        else if (event.events & EPOLLIN) receive(event.data.ptr);
        else if (event.events & EPOLLOUT) flush(event.data.ptr);
        else drop(event.data.ptr);
    }
}
