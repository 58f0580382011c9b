// Package exposition writes values in the text format of Prometheus, version 0.0.4.
package exposition

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// ContentType is that of the text.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// Kind is the type of the values of a name.
type Kind string

// The kinds.
const (
	Counter   Kind = "counter"
	Gauge     Kind = "gauge"
	Histogram Kind = "histogram"
	Summary   Kind = "summary"
)

// Text is text in the making.
type Text struct{ bytes.Buffer }

// Family begins the values of a name. The help is the name alone, as ZooKeeper's is.
func (t *Text) Family(name string, kind Kind) {
	fmt.Fprintf(t, "# HELP %s %s\n# TYPE %s %s\n", name, name, name, kind)
}

// Value writes a value. Labels is empty, or what Label returns.
func (t *Text) Value(name, labels string, v any) {
	text := fmt.Sprint(v)
	if f, ok := v.(float64); ok {
		text = strconv.FormatFloat(f, 'g', -1, 64)
	}
	fmt.Fprintf(t, "%s%s %s\n", name, labels, text)
}

// Gauge writes a gauge without labels.
func (t *Text) Gauge(name string, v any) {
	t.Family(name, Gauge)
	t.Value(name, "", v)
}

// Set writes the values of a name by their label key, in order. Without values it writes nothing.
func Set[V cmp.Ordered](t *Text, name string, kind Kind, key string, values map[string]V) {
	if len(values) == 0 {
		return
	}
	t.Family(name, kind)
	for _, k := range slices.Sorted(maps.Keys(values)) {
		t.Value(name, Label(key, k), values[k])
	}
}

// Label returns labels with their values: a name and a value each. The format escapes these three characters alone.
func Label(pairs ...string) string {
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
	var list []string
	for pair := range slices.Chunk(pairs, 2) {
		list = append(list, pair[0]+`="`+escape.Replace(pair[1])+`"`)
	}
	return "{" + strings.Join(list, ",") + "}"
}
