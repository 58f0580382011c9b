package cli

import (
	"encoding/json"
	"fmt"
	"time"
)

// json prints v as one line of JSON, as docs/cli-json.md promises.
func (c *cli) json(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return failed(err)
	}
	_, err = fmt.Fprintf(c.stdout, "%s\n", b)
	return failed(err)
}

// sessionID writes a session id as ZooKeeper's own tools do. In JSON it is text: 64 bits do not fit into a JSON number everywhere.
func sessionID(id int64) string { return fmt.Sprintf("0x%x", uint64(id)) }

func timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }
