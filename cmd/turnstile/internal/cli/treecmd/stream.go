package treecmd

// The stream of turnstile export: a header, one line for each node with parents first, and a trailer. Each line is a
// JSON object.

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/seed-a3166700/turnstile/cmd/turnstile/internal/cli/command"
	"github.com/seed-a3166700/turnstile/zk"
)

// format is the version of the stream.
const format = 1

// headerJSON is the first line.
type headerJSON struct {
	Format int    `json:"turnstile_export"`
	Path   string `json:"path"` // of the root, which import replaces by its own
	Time   string `json:"time"`
}

// exportedJSON is a line for a node. A node is found by its path below the root, which is empty for the root.
type exportedJSON struct {
	Path *string   `json:"path"`
	ACL  []aclJSON `json:"acl"`
	Next int64     `json:"next_sequence,omitempty"` // number of the next sequential child: how many were ever created
	Set  bool      `json:"set,omitempty"`           // its data was set after its creation, which recipes can tell
	dataJSON
}

// version is the version that the node has in a copy. Larger ones would take as many writes.
func (e *exportedJSON) version() int32 {
	if e.Set {
		return 1
	}
	return 0
}

// entry is a node of a stream.
type entry struct {
	zk.Node
	next    int64 // see exportedJSON
	version int32
}

// trailerJSON is the last line. Without it the stream was cut.
type trailerJSON struct {
	End        bool `json:"end"`
	Nodes      int  `json:"nodes"`
	Ephemerals int  `json:"ephemerals_left_out"`
	Changed    bool `json:"changed_meanwhile"` // the tree may never have been as it stands here
}

// maxLine is how long a line may be: data of 64 MiB in base64, and some more.
const maxLine = maxInput/3*4 + 1<<20

// reader reads a stream and checks it. It holds the names along one way from the root, not more.
type reader struct {
	lines  *bufio.Reader
	n      int   // of the last line
	offset int64 // behind the last line
	way    []string
	nodes  int
	torn   bool // as the last line says
}

// newReader reads the header.
func newReader(r io.Reader) (*reader, error) {
	in := &reader{lines: bufio.NewReaderSize(r, 1<<16)}
	var header headerJSON
	if begin, _ := in.lines.Peek(1); len(begin) == 1 && begin[0] != '{' { // the next read has the error
		return nil, errors.New("line 1: this is not the output of turnstile export: is it compressed, or a backup?")
	}
	line, err := in.line()
	if err == nil {
		err = in.decode(line, &header)
	}
	if errors.Is(err, io.EOF) {
		return nil, errors.New("empty: did turnstile export fail?")
	}
	if err == nil && header.Format == 0 {
		err = errors.New("line 1: this is not the output of turnstile export")
	}
	if err == nil && header.Format != format {
		err = fmt.Errorf("line 1: format %d is newer than this turnstile, which reads format %d", header.Format, format)
	}
	return in, err
}

// read returns the next node. It returns io.EOF after the last one, when the trailer has been checked.
func (in *reader) read() (entry, error) {
	line, err := in.line()
	if errors.Is(err, io.EOF) {
		return entry{}, fmt.Errorf("line %d: the stream ends here, without its last line: it was cut", in.n+1)
	}
	if err != nil {
		return entry{}, err
	}
	if bytes.HasPrefix(line, []byte(`{"end"`)) {
		return entry{}, in.end(line)
	}
	var e exportedJSON
	if err := in.decode(line, &e); err != nil {
		return entry{}, err
	}
	node, err := in.node(e)
	if err != nil {
		return entry{}, fmt.Errorf("line %d: %w", in.n, err)
	}
	in.nodes++
	return node, nil
}

func (in *reader) node(e exportedJSON) (entry, error) {
	node := entry{zk.Node{Data: e.bytes(), Mode: zk.Persistent}, e.Next, e.version()}
	if e.Next < 0 || e.Next > math.MaxInt32 {
		return node, fmt.Errorf("next_sequence is not a sequence number: %d", e.Next)
	}
	if e.Path == nil {
		return node, errors.New("it has no path")
	}
	node.Path = *e.Path
	if err := in.step(node.Path); err != nil {
		return node, err
	}
	if len(e.ACL) == 0 {
		return node, errors.New("acl is empty")
	}
	for _, a := range e.ACL {
		perms, err := command.ParsePerms(a.Rights)
		if err != nil {
			return node, fmt.Errorf("acl: %w", err)
		}
		node.ACL = append(node.ACL, zk.ACL{Perms: perms, ID: zk.ID{Scheme: a.Scheme, ID: a.ID}})
	}
	return node, nil
}

// step checks that a node stands behind its parent and behind its elder siblings.
func (in *reader) step(path string) error {
	if in.nodes == 0 {
		if path != "" {
			return fmt.Errorf("the first node must be the root, with an empty path: %q", path)
		}
		return nil
	}
	if err := zk.ValidatePath(path); err != nil || path == "/" {
		return fmt.Errorf("invalid path %q below the root", path)
	}
	names := strings.Split(path[1:], "/")
	above := len(names) - 1
	if above > len(in.way) {
		return fmt.Errorf("%s stands before its parent", path)
	}
	for i, name := range names[:above] {
		if in.way[i] != name {
			return fmt.Errorf("%s does not stand behind its parent", path)
		}
	}
	if above < len(in.way) && in.way[above] >= names[above] {
		return fmt.Errorf("%s does not stand in the order of the names, or twice", path)
	}
	in.way = append(in.way[:above], names[above])
	return nil
}

func (in *reader) end(line []byte) error {
	var t trailerJSON
	if err := in.decode(line, &t); err != nil {
		return err
	}
	if t.Nodes != in.nodes {
		return fmt.Errorf("line %d: the stream has %d nodes and says that it has %d: it was changed", in.n, in.nodes,
			t.Nodes)
	}
	if in.nodes == 0 {
		return fmt.Errorf("line %d: the stream has no nodes", in.n)
	}
	if _, err := in.lines.ReadByte(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("line %d: something follows the end of the stream", in.n+1)
	}
	in.torn = t.Changed
	return io.EOF
}

// line reads a line.
func (in *reader) line() ([]byte, error) {
	var line []byte
	for {
		part, err := in.lines.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxLine {
			return nil, fmt.Errorf("line %d: longer than %d bytes", in.n+1, maxLine)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && len(line) > 0:
			return nil, fmt.Errorf("line %d: the stream ends within the line: it was cut", in.n+1)
		case err != nil:
			return nil, err
		}
		in.n++
		in.offset += int64(len(line))
		return line, nil
	}
}

func (in *reader) decode(line []byte, v any) error {
	if err := json.Unmarshal(line, v); err != nil {
		return fmt.Errorf("line %d: %w", in.n, err)
	}
	return nil
}
