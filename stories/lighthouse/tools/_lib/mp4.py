"""An MP4 with H.264 video, written with nothing but the standard library.

Every macroblock is either I_PCM, its 384 samples as they are, or skipped in a P slice: "as
before". No transform, no entropy coding worth the name, and every decoder must understand it. Samples stay
within 16..235, so bytes that look like a start code hardly ever arise.
"""

import struct


class Bits:
    def __init__(self):
        self.out = bytearray()
        self.held = 0
        self.count = 0

    def u(self, width, value):
        self.held = self.held << width | value
        self.count += width
        while self.count >= 8:
            self.count -= 8
            self.out.append(self.held >> self.count & 255)
        self.held &= (1 << self.count) - 1

    def ue(self, value):
        length = (value + 1).bit_length()
        self.u(2 * length - 1, value + 1)

    def align(self):
        if self.count:
            self.u(8 - self.count, 0)

    def raw(self, data):
        self.out += data

    def end(self):
        self.u(1, 1)
        self.align()
        return escaped(bytes(self.out))


def escaped(payload):
    if b"\0\0" not in payload:
        return payload
    out = bytearray()
    zeros = 0
    for byte in payload:
        if zeros >= 2 and byte <= 3:
            out.append(3)
            zeros = 0
        out.append(byte)
        zeros = zeros + 1 if byte == 0 else 0
    return bytes(out)


def sequence_parameters(columns, rows):
    bits = Bits()
    for width, value in ((8, 66), (8, 0xC0), (8, 30)):  # constrained baseline, level 3
        bits.u(width, value)
    for value in (0, 0, 2, 1):  # id, frame_num of 4 bits, order as decoded, one reference frame
        bits.ue(value)
    bits.u(1, 0)
    bits.ue(columns - 1)
    bits.ue(rows - 1)
    for value in (1, 1, 0, 0):  # frames only, direct 8x8, no cropping, no VUI
        bits.u(1, value)
    return b"\x67" + bits.end()


def picture_parameters():
    bits = Bits()
    bits.ue(0)
    bits.ue(0)
    bits.u(2, 0)  # CAVLC
    for _ in range(3):
        bits.ue(0)
    bits.u(3, 0)
    for _ in range(3):
        bits.ue(0)
    bits.u(3, 0b100)  # the slice says whether to deblock
    return b"\x68" + bits.end()


def picture(number, blocks, before):
    """One access unit: the first picture whole, later ones only where a block changed."""
    bits = Bits()
    bits.ue(0)
    bits.ue(5 if number else 7)
    bits.ue(0)
    bits.u(4, number % 16)
    if number:
        bits.u(3, 0)
    else:
        bits.ue(0)
        bits.u(2, 0)
    bits.ue(0)  # slice_qp_delta
    bits.ue(1)  # no deblocking: the samples are exact
    skipped = 0
    for block, old in zip(blocks, before or [None] * len(blocks), strict=True):
        if number and block == old:
            skipped += 1
            continue
        if number:
            bits.ue(skipped)
        bits.ue(30 if number else 25)
        bits.align()
        bits.raw(block)
        skipped = 0
    if skipped:
        bits.ue(skipped)
    return (b"\x41" if number else b"\x65") + bits.end()


def macroblocks(width, height, luma, blue, red):
    half = width // 2
    found = []
    for y in range(0, height, 16):
        rows = [luma[at * width : (at + 1) * width] for at in range(y, y + 16)]
        blues = [blue[at * half : (at + 1) * half] for at in range(y // 2, y // 2 + 8)]
        reds = [red[at * half : (at + 1) * half] for at in range(y // 2, y // 2 + 8)]
        for x in range(0, width, 16):
            parts = [row[x : x + 16] for row in rows]
            parts += [row[x // 2 : x // 2 + 8] for row in blues]
            parts += [row[x // 2 : x // 2 + 8] for row in reds]
            found.append(b"".join(parts))
    return found


def box(kind, *parts):
    body = b"".join(parts)
    return struct.pack(">I4s", 8 + len(body), kind) + body


def full(kind, flags, *parts):
    return box(kind, struct.pack(">I", flags), *parts)


MATRIX = struct.pack(">9I", 0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000)


def movie(width, height, frames, rate):
    """`frames` yields (luma, blue, red), 4:2:0, both sides multiples of 16."""
    sps, pps = sequence_parameters(width // 16, height // 16), picture_parameters()
    samples, before = [], None
    for number, planes in enumerate(frames):
        blocks = macroblocks(width, height, *planes)
        nal = picture(number, blocks, before)
        samples.append(struct.pack(">I", len(nal)) + nal)
        before = blocks
    head = box(b"ftyp", b"isom\0\0\2\0isomiso2avc1mp41")
    moov = _moov(width, height, sps, pps, samples, rate, 0)
    moov = _moov(width, height, sps, pps, samples, rate, len(head) + len(moov) + 8)
    return head + moov + box(b"mdat", *samples)


def _moov(width, height, sps, pps, samples, rate, offset):
    count = len(samples)
    avcc = box(
        b"avcC", bytes([1, sps[1], sps[2], sps[3], 0xFF, 0xE1]),
        struct.pack(">H", len(sps)), sps, b"\1", struct.pack(">H", len(pps)), pps,
    )  # fmt: skip
    avc1 = box(
        b"avc1", b"\0" * 6, struct.pack(">H", 1), b"\0" * 16, struct.pack(">HH", width, height),
        struct.pack(">II", 0x480000, 0x480000), b"\0" * 4, struct.pack(">H", 1), b"\0" * 32,
        struct.pack(">Hh", 24, -1), avcc,
    )  # fmt: skip
    table = box(
        b"stbl",
        full(b"stsd", 0, struct.pack(">I", 1), avc1),
        full(b"stts", 0, struct.pack(">III", 1, count, 1)),
        full(b"stss", 0, struct.pack(">II", 1, 1)),
        full(b"stsc", 0, struct.pack(">IIII", 1, 1, count, 1)),
        full(b"stsz", 0, struct.pack(">II", 0, count), *(struct.pack(">I", len(s)) for s in samples)),
        full(b"stco", 0, struct.pack(">II", 1, offset)),
    )
    info = box(
        b"minf",
        full(b"vmhd", 1, b"\0" * 8),
        box(b"dinf", full(b"dref", 0, struct.pack(">I", 1), full(b"url ", 1))),
        table,
    )
    media = box(
        b"mdia",
        full(b"mdhd", 0, struct.pack(">IIIIHH", 0, 0, rate, count, 0x55C4, 0)),
        full(b"hdlr", 0, b"\0" * 4, b"vide", b"\0" * 12, b"light\0"),
        info,
    )
    track = box(
        b"trak",
        full(b"tkhd", 3, struct.pack(">IIIII", 0, 0, 1, 0, count), b"\0" * 16, MATRIX,
             struct.pack(">II", width << 16, height << 16)),
        media,
    )  # fmt: skip
    header = full(
        b"mvhd", 0, struct.pack(">IIII", 0, 0, rate, count), struct.pack(">IH", 0x10000, 0x100),
        b"\0" * 10, MATRIX, b"\0" * 24, struct.pack(">I", 2),
    )  # fmt: skip
    return box(b"moov", header, track)
