package files

import (
	"bufio"
	"errors"
	"io"
	"unicode/utf16"
	"unicode/utf8"
)

// decoder turns another encoding into UTF-8 while it is read. What cannot be decoded is
// a fault with its line; nothing is replaced.
type decoder struct {
	in     *bufio.Reader
	decode func(out []byte, in *bufio.Reader) ([]byte, error)
	out    []byte // decoded and not given yet
	line   int    // line ends so far
	after  bool   // the last character was CR
	err    error
}

func (d *decoder) Read(p []byte) (int, error) {
	for len(d.out) == 0 {
		if d.err != nil {
			return 0, d.err
		}
		d.out = d.out[:0]
		for len(d.out) < 4096 && d.err == nil {
			before := len(d.out)
			d.out, d.err = d.decode(d.out, d.in)
			d.count(d.out[before:])
		}
		var f *Fault
		if errors.As(d.err, &f) {
			f.Line = d.line + 1
		}
	}
	n := copy(p, d.out)
	d.out = d.out[n:]
	return n, nil
}

// count follows the physical lines.
func (d *decoder) count(b []byte) {
	for _, c := range b {
		if c == '\r' || c == '\n' && !d.after {
			d.line++
		}
		d.after = c == '\r'
	}
}

// utf16Decoder reads one character of UTF-16 at a time.
type utf16Decoder struct{ little bool }

func (u *utf16Decoder) decode(out []byte, in *bufio.Reader) ([]byte, error) {
	r, err := u.unit(in)
	if err != nil {
		return out, err
	}
	if utf16.IsSurrogate(r) {
		low, err := u.unit(in)
		if err != nil && !errors.Is(err, io.EOF) {
			return out, err
		}
		if r = utf16.DecodeRune(r, low); r == utf8.RuneError || err != nil {
			return out, &Fault{Problem: "half of a UTF-16 character; convert or copy the file again"}
		}
	}
	return utf8.AppendRune(out, r), nil
}

func (u *utf16Decoder) unit(in *bufio.Reader) (rune, error) {
	a, err := in.ReadByte()
	if err != nil {
		return 0, err
	}
	b, err := in.ReadByte()
	if errors.Is(err, io.EOF) {
		return 0, &Fault{Problem: "the file ends inside a UTF-16 character; copy the file again"}
	}
	if err != nil {
		return 0, err
	}
	if u.little {
		a, b = b, a
	}
	return rune(a)<<8 | rune(b), nil
}

func decodeWindows1252(out []byte, in *bufio.Reader) ([]byte, error) {
	b, err := in.ReadByte()
	if err != nil {
		return out, err
	}
	if windows1252Of(b) == utf8.RuneError {
		return out, &Fault{Problem: "a byte that Windows-1252 does not have; find out how the file is encoded and write it as `encoding`"}
	}
	return appendWindows1252(out, b), nil
}

func appendWindows1252(out []byte, b byte) []byte {
	return utf8.AppendRune(out, windows1252Of(b))
}

// windows1252Of gives the character of a byte; U+FFFD for the five that have none.
func windows1252Of(b byte) rune {
	if b < 0x80 || b > 0x9F {
		return rune(b)
	}
	return [32]rune{
		'€', utf8.RuneError, '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', utf8.RuneError, 'Ž', utf8.RuneError,
		utf8.RuneError, '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', utf8.RuneError, 'ž', 'Ÿ',
	}[b-0x80]
}
