// Unpacks the browser of @sparticuz/chromium into TMPDIR, with a font and the libraries that a bare system lacks.

import { writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { fileURLToPath } from "node:url";
import { inflate } from "@sparticuz/chromium";

const packed = new URL("../bin/", import.meta.resolve("@sparticuz/chromium"));
for (const name of ["chromium.br", "fonts.tar.br", "al2023.tar.br"]) {
  await inflate(fileURLToPath(new URL(name, packed)));
}
// The package's own configuration of fonts has places of another system.
const configuration = `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "urn:fontconfig:fonts.dtd">
<fontconfig>
  <include ignore_missing="yes">/etc/fonts/fonts.conf</include>
  <dir>${tmpdir()}/fonts/fonts</dir>
  <cachedir>${tmpdir()}/font-cache</cachedir>
</fontconfig>
`;
writeFileSync(`${tmpdir()}/fonts.conf`, configuration);
