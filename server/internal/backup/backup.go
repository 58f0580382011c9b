// Package backup has the format of backups: a tar file of records, with a manifest behind them that says what they must
// be. A backup that is torn, or of which one byte is another, is not accepted.
//
// The records are one stream, cut into files anywhere: for each key and each value its length as an unsigned varint and
// its bytes, as the store has them. Standard tools can look at a backup: after tar xf, sha256sum -c manifest.sha256
// checks the manifest, which has the SHA-256 of each file.
package backup

// The manifest, and writing a backup.

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
)

// Format is the version of the format.
const Format = 1

// PieceSize is about how many bytes of records a file has. Both sides have one file in memory, not more.
const PieceSize = 512 << 10

// The sizes of the largest files that are accepted: of records, and the manifest.
const (
	maxFile     = 4 << 20
	maxManifest = 256 << 20 // for a thousand million nodes
)

const (
	manifestName = "manifest.json"
	sumName      = "manifest.sha256"
)

// Summary says what a backup holds.
type Summary struct {
	Format   int   `json:"format"`
	Zxid     int64 `json:"zxid"`     // of the last transaction in it
	Reserved int64 `json:"reserved"` // up to it the server may have used zxids
	Seed     int64 `json:"seed"`     // the last session id given out
	Nodes    int64 `json:"nodes"`    // those of sessions included
	Records  int64 `json:"records"`
	Sessions int64 `json:"sessions"` // that were open; they are not in it
}

// Manifest is what the last file but one says.
type Manifest struct {
	Summary
	Made  string `json:"made"` // when, by the clock of the machine that wrote the backup
	Files []File `json:"files"`
}

// File is a file of records.
type File struct {
	Name   string `json:"name"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// Size returns how many bytes all records have.
func (m *Manifest) Size() int64 {
	n := int64(0)
	for _, f := range m.Files {
		n += f.Size
	}
	return n
}

// AppendRecord appends a record to the stream.
func AppendRecord(b, key, value []byte) []byte {
	b = append(binary.AppendUvarint(b, uint64(len(key))), key...)
	return append(binary.AppendUvarint(b, uint64(len(value))), value...)
}

// Writer writes a backup.
type Writer struct {
	tar   *tar.Writer
	files []File
}

// NewWriter returns a Writer that writes to w.
func NewWriter(w io.Writer) *Writer { return &Writer{tar: tar.NewWriter(w)} }

// Add writes the next piece of the stream of records.
func (w *Writer) Add(piece []byte) error {
	sum := sha256.Sum256(piece)
	f := File{fmt.Sprintf("records-%06d", len(w.files)+1), int64(len(piece)), hex.EncodeToString(sum[:])}
	w.files = append(w.files, f)
	return w.file(f.Name, piece)
}

// Close writes the manifest and ends the backup. It does not close what it writes to.
func (w *Writer) Close(s Summary, made string) (*Manifest, error) {
	s.Format = Format
	m := &Manifest{Summary: s, Made: made, Files: w.files}
	b, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return nil, err
	}
	b = append(b, '\n')
	if err := w.file(manifestName, b); err != nil {
		return nil, err
	}
	if err := w.file(sumName, fmt.Appendf(nil, "%x  %s\n", sha256.Sum256(b), manifestName)); err != nil {
		return nil, err
	}
	return m, w.tar.Close()
}

func (w *Writer) file(name string, content []byte) error {
	h := &tar.Header{Name: name, Mode: 0o600, Size: int64(len(content)), Format: tar.FormatUSTAR}
	if err := w.tar.WriteHeader(h); err != nil {
		return err
	}
	_, err := w.tar.Write(content)
	return err
}
