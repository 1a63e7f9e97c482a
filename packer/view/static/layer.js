// A label over its picture: numbers in a texture, and a palette of 65,536 colours that is all that a toggle changes.
// WebGL 2 draws it; if there is none, a canvas does the same on the pixels that are seen.

const SIDE = 256, HATCH = 8, LINE = 3;
export const IGNORED_MARK = 128; // in the alpha of the palette: hatched. 0 is hidden, 64 hardly covered, 255 shown.
export const SHOWN = 255, FAINT = 64, HIDDEN = 0;

const VERTEX = `#version 300 es
void main() { gl_Position = vec4(vec2((gl_VertexID << 1) & 2, gl_VertexID & 2) * 2.0 - 1.0, 0.0, 1.0); }`;
const FRAGMENT = `#version 300 es
precision highp float; precision highp int; precision highp usampler2DArray;
uniform usampler2DArray numbers; uniform sampler2D palette;
uniform vec4 view; uniform vec2 canvas; uniform ivec2 size; uniform int classes;
uniform float opacity; uniform bool outlines;
out vec4 colour;
vec4 taken(uint number) { return texelFetch(palette, ivec2(int(number & 255u), int(number >> 8u)), 0); }
ivec2 pixel(vec2 at) { return ivec2(floor((at - view.xy) / view.zw)); }
bool inside(ivec2 at) { return all(greaterThanEqual(at, ivec2(0))) && all(lessThan(at, size)); }
uint striped(ivec2 at, int turn) {
  int count = 0;
  for (int plane = 0; plane * 8 < classes; plane++) {
    uint bits = texelFetch(numbers, ivec3(at, plane), 0).r;
    for (int bit = 0; bit < 8; bit++) if (((bits >> bit) & 1u) == 1u && taken(uint(plane * 8 + bit)).a > 0.0) count++;
  }
  if (count == 0) return 65534u;
  int wanted = turn % count;
  for (int plane = 0; plane * 8 < classes; plane++) {
    uint bits = texelFetch(numbers, ivec3(at, plane), 0).r;
    for (int bit = 0; bit < 8; bit++) if (((bits >> bit) & 1u) == 1u && taken(uint(plane * 8 + bit)).a > 0.0) {
      if (wanted == 0) return uint(plane * 8 + bit);
      wanted--;
    }
  }
  return 65534u;
}
uint number(ivec2 at, int turn) { return classes > 0 ? striped(at, turn) : texelFetch(numbers, ivec3(at, 0), 0).r; }
void main() {
  vec2 screen = vec2(gl_FragCoord.x, canvas.y - gl_FragCoord.y);
  ivec2 at = pixel(screen);
  if (!inside(at)) { colour = vec4(0.0); return; }
  int diagonal = int(screen.x) + int(screen.y);
  vec4 found = taken(number(at, diagonal / 4));
  float mark = found.a * 255.0, alpha = 0.0;
  if (mark > 200.0) alpha = opacity;
  else if (mark > 100.0) alpha = diagonal % ${HATCH} < ${LINE} ? 1.0 - pow(1.0 - opacity, 3.0) : pow(opacity, 3.0);
  else if (mark > 30.0) alpha = pow(opacity, 3.0);
  if (outlines && mark > 200.0) {
    uint own = number(at, 0);
    for (int side = 0; side < 4; side++) {
      vec2 step = side == 0 ? vec2(1, 0) : side == 1 ? vec2(-1, 0) : side == 2 ? vec2(0, 1) : vec2(0, -1);
      ivec2 next = pixel(screen + 1.5 * step);
      if (inside(next) && number(next, 0) != own) alpha = 1.0;
    }
  }
  colour = vec4(found.rgb * alpha, alpha);
}`;

export function layerOf(canvas, wish) {
  if (wish !== "2d") {
    try {
      if (wish !== "webgl2" && isSoftware()) return new CanvasLayer(canvas);
      const gl = canvas.getContext("webgl2", { premultipliedAlpha: true, antialias: false, preserveDrawingBuffer: true });
      if (gl) return new TextureLayer(canvas, gl);
    } catch { /* then the canvas below */ }
  }
  return new CanvasLayer(canvas);
}

// Without a graphics card the canvas is ten times as fast as WebGL.
function isSoftware() {
  const gl = document.createElement("canvas").getContext("webgl2");
  const known = gl?.getExtension("WEBGL_debug_renderer_info");
  const name = known ? gl.getParameter(known.UNMASKED_RENDERER_WEBGL) : "";
  gl?.getExtension("WEBGL_lose_context")?.loseContext();
  return /swiftshader|llvmpipe|softpipe|software/i.test(name);
}

class TextureLayer {
  constructor(canvas, gl) {
    this.canvas = canvas;
    this.gl = gl;
    this.kind = "webgl2";
    const program = gl.createProgram();
    for (const [kind, text] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, text);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS)) throw new Error(gl.getProgramInfoLog(program));
    gl.useProgram(program);
    this.at = (name) => gl.getUniformLocation(program, name);
    this.most = gl.getParameter(gl.MAX_TEXTURE_SIZE);
    gl.pixelStorei(gl.UNPACK_ALIGNMENT, 1);
    this.palette = this.texture(1, gl.TEXTURE_2D);
    gl.texStorage2D(gl.TEXTURE_2D, 1, gl.RGBA8, SIDE, SIDE);
    gl.uniform1i(this.at("numbers"), 0);
    gl.uniform1i(this.at("palette"), 1);
  }

  texture(unit, kind) {
    const gl = this.gl, made = gl.createTexture();
    gl.activeTexture(gl.TEXTURE0 + unit);
    gl.bindTexture(kind, made);
    gl.texParameteri(kind, gl.TEXTURE_MIN_FILTER, gl.NEAREST);
    gl.texParameteri(kind, gl.TEXTURE_MAG_FILTER, gl.NEAREST);
    gl.texParameteri(kind, gl.TEXTURE_WRAP_S, gl.CLAMP_TO_EDGE);
    gl.texParameteri(kind, gl.TEXTURE_WRAP_T, gl.CLAMP_TO_EDGE);
    return made;
  }

  // Returns false if the graphics card cannot hold so many numbers.
  numbers({ data, planes, height, width, bits }) {
    const gl = this.gl;
    if (Math.max(height, width) > this.most) return false;
    if (this.held) gl.deleteTexture(this.held);
    this.held = this.texture(0, gl.TEXTURE_2D_ARRAY);
    const wide = data instanceof Uint16Array;
    gl.texStorage3D(gl.TEXTURE_2D_ARRAY, 1, wide ? gl.R16UI : gl.R8UI, width, height, planes);
    gl.texSubImage3D(gl.TEXTURE_2D_ARRAY, 0, 0, 0, 0, width, height, planes, gl.RED_INTEGER,
      wide ? gl.UNSIGNED_SHORT : gl.UNSIGNED_BYTE, data);
    gl.uniform2i(this.at("size"), width, height);
    gl.uniform1i(this.at("classes"), bits ? 8 * planes : 0);
    return true;
  }

  colours(palette) {
    const gl = this.gl;
    gl.activeTexture(gl.TEXTURE1);
    gl.bindTexture(gl.TEXTURE_2D, this.palette);
    gl.texSubImage2D(gl.TEXTURE_2D, 0, 0, 0, SIDE, SIDE, gl.RGBA, gl.UNSIGNED_BYTE, palette);
  }

  draw({ x, y, scale, tall, opacity, outlines }) {
    const gl = this.gl, { width, height } = this.canvas;
    gl.viewport(0, 0, width, height);
    gl.uniform4f(this.at("view"), x, y, scale, tall);
    gl.uniform2f(this.at("canvas"), width, height);
    gl.uniform1f(this.at("opacity"), opacity);
    gl.uniform1i(this.at("outlines"), outlines ? 1 : 0);
    gl.drawArrays(gl.TRIANGLES, 0, 3);
  }

  clear() {
    this.gl.clearColor(0, 0, 0, 0);
    this.gl.clear(this.gl.COLOR_BUFFER_BIT);
  }
}

class CanvasLayer {
  constructor(canvas) {
    this.canvas = canvas;
    this.kind = "2d";
    this.context = canvas.getContext("2d");
  }

  numbers(layer) {
    this.layer = layer;
    return true;
  }

  colours(palette) {
    this.bytes = palette;
    this.words = new Uint32Array(palette.buffer);
  }

  clear() {
    this.context.clearRect(0, 0, this.canvas.width, this.canvas.height);
  }

  draw({ x, y, scale, tall, opacity, outlines }) {
    const { width, height } = this.canvas, { layer, bytes, words } = this;
    const image = this.context.createImageData(width, height), out = new Uint32Array(image.data.buffer);
    const faint = opacity ** 3, alpha = (part) => (Math.round(255 * part) << 24) >>> 0;
    const shown = alpha(opacity), soft = alpha(faint), line = alpha(1 - (1 - opacity) ** 3), full = alpha(1);
    const columns = Int32Array.from({ length: width }, (_, column) => Math.floor((column + 0.5 - x) / scale));
    for (let row = 0; row < height; row++) {
      const from = Math.floor((row + 0.5 - y) / tall);
      if (from < 0 || from >= layer.height) continue;
      for (let column = 0; column < width; column++) {
        const at = columns[column];
        if (at < 0 || at >= layer.width) continue;
        const number = this.number(from, at, (row + column) >> 2), mark = bytes[4 * number + 3];
        if (!mark) continue;
        let strength = mark > 200 ? shown : mark > 100 && (row + column) % HATCH < LINE ? line : soft;
        if (outlines && mark > 200 && this.edge(row, column, from, at, columns, y, tall)) strength = full;
        out[row * width + column] = (words[number] & 0xffffff) | strength;
      }
    }
    this.context.putImageData(image, 0, 0);
  }

  number(row, column, turn) {
    const { data, width, height, planes, bits } = this.layer, at = row * width + column;
    if (!bits) return data[at];
    const found = [];
    for (let plane = 0; plane < planes; plane++) {
      const set = data[plane * height * width + at];
      for (let bit = 0; bit < 8 && set >> bit; bit++) {
        if ((set >> bit) & 1 && this.bytes[4 * (8 * plane + bit) + 3]) found.push(8 * plane + bit);
      }
    }
    return found.length ? found[turn % found.length] : 65534;
  }

  edge(row, column, from, at, columns, y, tall) {
    const own = this.number(from, at, 0), { width, height } = this.layer;
    for (const next of [columns[column - 1], columns[column + 1]]) {
      if (next >= 0 && next < width && this.number(from, next, 0) !== own) return true;
    }
    for (const step of [-1, 1]) {
      const next = Math.floor((row + step + 0.5 - y) / tall);
      if (next >= 0 && next < height && this.number(next, at, 0) !== own) return true;
    }
    return false;
  }
}
