"""Pictures as one byte of tone a pixel, inked with a ramp of colours, as a print is.

Gradients are rows, silhouettes are spans, and grain is added to a whole plane at once: a plane of bytes is
one very large number, and two such numbers add in microseconds as long as no byte overflows.
"""

import itertools
import random
import struct
import zlib


def add(base, light):
    """base + light, pixel by pixel. The caller keeps every sum below 256."""
    total = int.from_bytes(base, "little") + int.from_bytes(light, "little")
    return bytearray(total.to_bytes(len(base), "little"))


def ramp(*stops):
    """256 colours through (tone, (r, g, b)) stops."""
    colours = []
    for tone in range(256):
        for (low, one), (high, other) in itertools.pairwise(stops):
            if low <= tone <= high:
                share = (tone - low) / (high - low)
                colours.append(tuple(round(a + (b - a) * share) for a, b in zip(one, other, strict=True)))
                break
    return colours


# Storm ink at the bottom, wet slate, a sea green, then lamplight: straw, butter, white.
STORM = ramp(
    (0, (7, 9, 16)), (40, (18, 27, 42)), (90, (44, 66, 84)), (130, (98, 124, 128)), (165, (176, 170, 138)),
    (200, (238, 196, 112)), (235, (255, 236, 184)), (255, (255, 250, 236)),
)  # fmt: skip
DAWN = ramp(
    (0, (22, 20, 30)), (50, (52, 52, 72)), (100, (104, 104, 122)), (145, (176, 150, 148)),
    (190, (232, 190, 160)), (225, (250, 226, 190)), (255, (255, 248, 234)),
)  # fmt: skip


class Plate:
    """A picture of `width` by `height` units, each drawn as `scale` by `scale` pixels: screens have several to a unit."""

    def __init__(self, width, height, seed, scale=2):
        self.width = width
        self.height = height
        self.scale = scale
        self.wide, self.tall = width * scale, height * scale
        self.tones = bytearray(self.wide * self.tall)
        self.chance = random.Random(seed)  # noqa: S311

    def gradient(self, top, bottom, stops):
        """Rows from `top` to `bottom` through the tones `stops`, dithered so that no band shows."""
        table = [self.chance.random() for _ in range(1021)]
        top, bottom = top * self.scale, bottom * self.scale
        for y in range(top, bottom):
            place = (y - top) / max(1, bottom - top - 1) * (len(stops) - 1)
            step = min(int(place), len(stops) - 2)
            tone = stops[step] + (stops[step + 1] - stops[step]) * (place - step)
            low, share = int(tone), tone - int(tone)
            grain = bytes(low + (chance < share) for chance in table)
            at = self.chance.randrange(1021)
            row = (grain[at:] + grain * (self.wide // 1021 + 2))[: self.wide]
            self.tones[y * self.wide : (y + 1) * self.wide] = row

    def span(self, y, left, right, tone):
        """A run of one tone, one unit high."""
        for line in range(self.scale):
            self._run(int(y * self.scale) + line, left * self.scale, right * self.scale, tone)

    def streak(self, x, y, length, tone):
        """A thin stroke that falls to the left, lighter than what is below it."""
        x, y, wide = x * self.scale, y * self.scale, self.wide
        for step in range(length * self.scale):
            at = (y + step) * wide + x - step // 3
            if 0 <= at < len(self.tones):
                self.tones[at] = min(255, self.tones[at] + tone)

    def _run(self, y, left, right, tone):
        """A run of pixels with soft ends."""
        if not 0 <= y < self.tall:
            return
        start, stop = max(0, int(left)), min(self.wide, int(right))
        if start >= stop:
            return
        row = y * self.wide
        edges = ((start, 1 - (left - int(left)) if left > 0 else 1), (stop, right - int(right)))
        self.tones[row + start : row + stop] = bytes((tone,)) * (stop - start)
        for x, share in edges:
            if 0 <= x < self.wide and x == stop:
                old = self.tones[row + x]
                self.tones[row + x] = int(old + (tone - old) * share)

    def polygon(self, points, tone):
        """Filled, convex or not."""
        points = [(x * self.scale, y * self.scale) for x, y in points]
        ys = [y for _, y in points]
        for y in range(max(0, int(min(ys))), min(self.tall, int(max(ys)) + 1)):
            crossings = []
            middle = y + 0.5
            for (x1, y1), (x2, y2) in zip(points, points[1:] + points[:1], strict=True):
                if (y1 <= middle) != (y2 <= middle):
                    crossings.append(x1 + (middle - y1) * (x2 - x1) / (y2 - y1))
            crossings.sort()
            for left, right in zip(crossings[::2], crossings[1::2], strict=False):
                self._run(y, left, right, tone)

    def glow(self, x, y, radius, strength, squash=1.0):
        """Light around a point, falling off with the distance; added, never past the brightest tone."""
        tones, width = self.tones, self.wide
        x, y, radius = x * self.scale, y * self.scale, radius * self.scale
        reach = radius * radius
        for row in range(max(0, int(y - radius * squash)), min(self.tall, int(y + radius * squash) + 1)):
            high = ((row - y) / squash) ** 2
            if high >= reach:
                continue
            half = int((reach - high) ** 0.5)
            left, right = max(0, int(x) - half), min(width, int(x) + half + 1)
            base = row * width
            for at in range(left, right):
                fall = 1 - ((at - x) ** 2 + high) / reach
                tone = tones[base + at] + int(strength * fall * fall * fall)
                tones[base + at] = tone if tone < 255 else 255

    def grain(self, amount):
        """The tooth of the paper."""
        noise = self.chance.randbytes(len(self.tones)).translate(
            bytes(value * amount // 256 for value in range(256))
        )
        lowered = self.tones.translate(bytes(min(value, 255 - amount) for value in range(256)))
        self.tones = add(lowered, noise)

    def png(self, colours):
        width = self.wide
        rows = b"".join(b"\0" + self.tones[at : at + width] for at in range(0, len(self.tones), width))
        palette = b"".join(bytes(colour) for colour in colours)
        header = struct.pack(">IIBBBBB", width, self.tall, 8, 3, 0, 0, 0)
        return b"\x89PNG\r\n\x1a\n" + b"".join(
            _chunk(kind, data)
            for kind, data in (
                (b"IHDR", header),
                (b"PLTE", palette),
                (b"IDAT", zlib.compress(rows, 5)),
                (b"IEND", b""),
            )
        )


def _chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
