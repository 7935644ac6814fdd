// Returns a picture with a palette of the colours that are there most often; the others become the nearest of these.

async (picture) => {
  const MOST = 64, ALIKE = 500;
  const bytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const image = await createImageBitmap(new Blob([bytes(picture)], { type: "image/png" }));
  const canvas = new OffscreenCanvas(image.width, image.height).getContext("2d");
  canvas.drawImage(image, 0, 0);
  const pixels = new Uint32Array(canvas.getImageData(0, 0, image.width, image.height).data.buffer);

  const counts = new Map();
  for (const pixel of pixels) counts.set(pixel, (counts.get(pixel) ?? 0) + 1);
  const parts = (pixel) => [pixel & 255, (pixel >> 8) & 255, (pixel >> 16) & 255];
  const far = ([r, g, b], [x, y, z]) => (r - x) ** 2 + (g - y) ** 2 + (b - z) ** 2;
  // The frequent ones first, but none that is much like one before it: what is rare and different must not turn grey.
  const palette = [], known = [];
  for (const [pixel] of [...counts].sort((one, other) => other[1] - one[1])) {
    const color = parts(pixel);
    if (palette.length < 8 || palette.length < MOST && known.every((one) => far(one, color) > ALIKE)) { palette.push(pixel); known.push(color); }
  }
  const places = new Map(palette.map((pixel, place) => [pixel, place]));
  function nearest(pixel) {
    const color = parts(pixel);
    let best = 0, least = Infinity;
    known.forEach((one, place) => { if (far(one, color) < least) { least = far(one, color); best = place; } });
    places.set(pixel, best);
    return best;
  }

  const { width, height } = image;
  const rows = new Uint8Array((width + 1) * height); // each begins with a 0: no filter, which suits a palette best
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const pixel = pixels[y * width + x];
      rows[y * (width + 1) + 1 + x] = places.get(pixel) ?? nearest(pixel);
    }
  }

  const table = Uint32Array.from({ length: 256 }, (_, number) => {
    for (let bit = 0; bit < 8; bit++) number = number & 1 ? 0xedb88320 ^ (number >>> 1) : number >>> 1;
    return number;
  });
  function chunk(kind, content) {
    const made = new Uint8Array(content.length + 12), view = new DataView(made.buffer);
    view.setUint32(0, content.length);
    made.set(new TextEncoder().encode(kind), 4);
    made.set(content, 8);
    let sum = 0xffffffff;
    for (const byte of made.subarray(4, -4)) sum = table[(sum ^ byte) & 255] ^ (sum >>> 8);
    view.setUint32(content.length + 8, ~sum >>> 0);
    return made;
  }
  const head = new DataView(new ArrayBuffer(13));
  head.setUint32(0, width);
  head.setUint32(4, height);
  head.setUint32(8, 0x08030000); // eight bits, by palette
  const squeezed = await new Response(new Blob([rows]).stream().pipeThrough(new CompressionStream("deflate"))).arrayBuffer();
  const made = new Blob([
    new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]),
    chunk("IHDR", new Uint8Array(head.buffer)),
    chunk("PLTE", new Uint8Array(known.flat())),
    chunk("IDAT", new Uint8Array(squeezed)),
    chunk("IEND", new Uint8Array()),
  ]);
  return new Promise((done) => {
    const reader = new FileReader();
    reader.onload = () => done(reader.result.split(",")[1]);
    reader.readAsDataURL(made);
  });
}
