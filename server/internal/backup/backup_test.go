package backup_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/seed-a3166700/turnstile/server/internal/backup"
)

// write returns a backup of these records, cut into pieces of size bytes.
func write(tb testing.TB, size int, records ...[2]string) []byte {
	tb.Helper()
	var stream []byte
	for _, r := range records {
		stream = backup.AppendRecord(stream, []byte(r[0]), []byte(r[1]))
	}
	var b bytes.Buffer
	w := backup.NewWriter(&b)
	for len(stream) > 0 {
		n := min(size, len(stream))
		if err := w.Add(stream[:n]); err != nil {
			tb.Fatal(err)
		}
		stream = stream[n:]
	}
	summary := backup.Summary{Zxid: 7, Reserved: 9, Nodes: int64(len(records)), Records: int64(len(records))}
	if _, err := w.Close(summary, "2026-01-01T00:00:00Z"); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

func TestRecordsOfEverySizeComeBackHoweverTheyAreCut(t *testing.T) {
	t.Parallel()
	records := [][2]string{
		{"n/", ""}, {"n/a", "x"}, {"d/a", string(make([]byte, 1000))}, {"n/b", string(make([]byte, 127))},
	}
	for size := 1; size < 1300; size += 1 + size/7 {
		var got [][2]string
		m, err := backup.Read(bytes.NewReader(write(t, size, records...)), func(key, value []byte) error {
			got = append(got, [2]string{string(key), string(value)})
			return nil
		})
		if err != nil || m.Zxid != 7 || m.Reserved != 9 || fmt.Sprint(got) != fmt.Sprint(records) {
			t.Errorf("pieces of %d bytes: got %+v %v", size, m, err)
		}
	}
	if _, err := backup.Read(bytes.NewReader(write(t, 1)), nil); err != nil {
		t.Errorf("a backup without records: %v", err)
	}
	want := errors.New("full")
	refuse := func(_, _ []byte) error { return want }
	if _, err := backup.Read(bytes.NewReader(write(t, 9, records...)), refuse); !errors.Is(err, want) {
		t.Errorf("got %v, want the error of what takes the records", err)
	}
}

// A file that another program has packed again, or one of another version, is refused, and the error says so.
func TestOtherFilesAreRefused(t *testing.T) {
	t.Parallel()
	whole := write(t, 100, [2]string{"n/", "x"})
	var again bytes.Buffer
	in, out := tar.NewReader(bytes.NewReader(whole)), tar.NewWriter(&again)
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		h.Uname = "ann"
		if err := out.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(out, in); err != nil {
			t.Fatal(err)
		}
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	for what, b := range map[string][]byte{
		"nothing": nil, "text": bytes.Repeat([]byte("text"), 1000), "packed again": again.Bytes(),
	} {
		if _, err := backup.Read(bytes.NewReader(b), func(_, _ []byte) error { return nil }); !errors.Is(err,
			backup.ErrDamaged) {
			t.Errorf("%s: got %v, want ErrDamaged", what, err)
		}
	}
}

// FuzzRead: whatever is accepted is what a Writer writes.
func FuzzRead(f *testing.F) {
	f.Add(write(f, 100, [2]string{"n/", "x"}))
	f.Add(write(f, 3, [2]string{"n/", "x"}, [2]string{"d/", "y"}))
	f.Add([]byte("text"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var stream []byte
		m, err := backup.Read(bytes.NewReader(b), func(key, value []byte) error {
			stream = backup.AppendRecord(stream, key, value)
			return nil
		})
		if err != nil {
			return
		}
		var again bytes.Buffer
		w := backup.NewWriter(&again)
		for _, file := range m.Files {
			if err := w.Add(stream[:file.Size]); err != nil {
				t.Fatal(err)
			}
			stream = stream[file.Size:]
		}
		if _, err := w.Close(m.Summary, m.Made); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(b, again.Bytes()) {
			t.Errorf("accepted %q", b)
		}
	})
}
