package backup

// Reading and checking a backup.

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// ErrDamaged is wrapped by the error of a backup that is torn, that was altered, or that is none.
var ErrDamaged = errors.New("the backup is damaged")

// damaged returns an error that wraps ErrDamaged.
func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrDamaged, fmt.Errorf(format, args...))
}

// Read reads a backup to its end and calls record for each record in it. Only if Read returns no error, what it has
// read is the backup that was written: the manifest comes last. record must not keep its arguments.
func Read(r io.Reader, record func(key, value []byte) error) (*Manifest, error) {
	in := &input{record: record, sum: sha256.New(), again: sha256.New()}
	in.raw = io.TeeReader(r, in.sum)
	in.tar = tar.NewReader(in.raw)
	in.copy = NewWriter(in.again)
	return in.read()
}

// input is a backup that is being read.
type input struct {
	raw     io.Reader
	tar     *tar.Reader
	record  func(key, value []byte) error
	rest    []byte // of the stream: the beginning of a record
	records int64
	// The whole of a backup follows from its content, so it is written once more, into a hash. That finds every
	// altered byte, wherever it is.
	copy       *Writer
	sum, again interface {
		io.Writer
		Sum(b []byte) []byte
	}
}

func (in *input) read() (*Manifest, error) {
	for {
		name, content, err := in.next()
		if err != nil {
			return nil, err
		}
		if name == manifestName {
			return in.end(content)
		}
		if err := in.copy.Add(content); err != nil {
			return nil, err
		}
		if want := in.copy.files[len(in.copy.files)-1].Name; name != want {
			return nil, damaged("it has %s where %s is expected", name, want)
		}
		if err := in.add(content); err != nil {
			return nil, err
		}
	}
}

// next returns the next file.
func (in *input) next() (name string, content []byte, err error) {
	h, err := in.tar.Next()
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "", nil, damaged("it ends before its manifest")
	case errors.Is(err, tar.ErrHeader) && len(in.copy.files) == 0:
		return "", nil, damaged("it does not begin like a backup: is it compressed, or the output of turnstile export?")
	case errors.Is(err, tar.ErrHeader):
		return "", nil, damaged("%w", err)
	case err != nil:
		return "", nil, err
	case h.Format != tar.FormatUSTAR || h.Typeflag != tar.TypeReg: // other kinds may be large only when they are read
		return "", nil, damaged("%q is not a file of a backup", h.Name)
	case h.Size > maxManifest || h.Size > maxFile && h.Name != manifestName:
		return "", nil, damaged("%q has %d bytes, more than any file of a backup", h.Name, h.Size)
	}
	var b bytes.Buffer // it grows with what there is, not with what the header says
	if _, err := io.Copy(&b, in.tar); errors.Is(err, io.ErrUnexpectedEOF) {
		return "", nil, damaged("it ends in the middle of %q", h.Name)
	} else if err != nil {
		return "", nil, err
	}
	return h.Name, b.Bytes(), nil
}

// add reads the records that a piece completes.
func (in *input) add(piece []byte) error {
	in.rest = append(in.rest, piece...)
	b := in.rest
	for {
		key, after, ok := cut(b)
		if !ok {
			break
		}
		value, after, ok := cut(after)
		if !ok {
			break
		}
		if err := in.record(key, value); err != nil {
			return err
		}
		in.records++
		b = after
	}
	in.rest = in.rest[:copy(in.rest, b)]
	return nil
}

// cut returns the first part of a record in b. It reports false if b does not have all of it.
func cut(b []byte) (part, after []byte, ok bool) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) {
		return nil, b, false
	}
	end := size + int(n)
	return b[size:end:end], b[end:], true
}

// end checks everything against the manifest.
func (in *input) end(text []byte) (*Manifest, error) {
	name, sum, err := in.next()
	if err != nil {
		return nil, err
	}
	if want := fmt.Sprintf("%x  %s\n", sha256.Sum256(text), manifestName); name != sumName || string(sum) != want {
		return nil, damaged("%s is not as %s says", manifestName, sumName)
	}
	var m Manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, damaged("%s: %w", manifestName, err)
	}
	if m.Format != Format {
		return nil, fmt.Errorf("the backup has format %d, and this program reads %d: use the version that wrote it",
			m.Format, Format)
	}
	for i, f := range in.copy.files {
		if i < len(m.Files) && f != m.Files[i] {
			return nil, damaged("%s is not as the manifest says", f.Name)
		}
	}
	switch {
	case !slices.Equal(m.Files, in.copy.files):
		return nil, damaged("it has %d files of records, and the manifest says %d", len(in.copy.files), len(m.Files))
	case len(in.rest) > 0 || m.Records != in.records:
		return nil, damaged("it has %d records, and the manifest says %d", in.records, m.Records)
	}
	if _, err := in.copy.Close(m.Summary, m.Made); err != nil {
		return nil, err
	}
	switch _, err := in.tar.Next(); {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, damaged("its end is cut off, behind %s", sumName)
	case !errors.Is(err, io.EOF):
		return nil, damaged("something follows %s", sumName)
	}
	if _, err := io.Copy(io.Discard, in.raw); err != nil {
		return nil, err
	}
	if !bytes.Equal(in.sum.Sum(nil), in.again.Sum(nil)) {
		return nil, damaged("it is not as it was written")
	}
	return &m, nil
}
