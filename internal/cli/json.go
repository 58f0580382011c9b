package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
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

// newLogger returns a logger for people, which writes sessions as everything else of ours does.
func newLogger(w io.Writer, level slog.Level) *slog.Logger {
	hex := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == "session" && a.Value.Kind() == slog.KindInt64 {
			a.Value = slog.StringValue(sessionID(a.Value.Int64()))
		}
		return a
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level, ReplaceAttr: hex}))
}

func timestamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }
