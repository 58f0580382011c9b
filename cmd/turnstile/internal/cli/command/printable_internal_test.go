package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestPrintableTextStaysAsItIs(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`say "no" \ über 世界`: `say "no" \ über 世界`,
		"\x1b[2J\a":          `\x1b[2J\a`,
		"a\nb\r\tc":          `a\nb\r\tc`,
		"\u202e\u200b\u2028": `\u202e\u200b\u2028`,
		"\u0085\x7f":         `\u0085\x7f`,
		"\xffé\xc3":          `\xffé\xc3`,
		"\uFFFD":             "\uFFFD",
		"":                   "",
	} {
		if got := Printable(text); got != want || Printable(got) != got {
			t.Errorf("%q: got %q, then %q, want %q", text, got, Printable(got), want)
		}
	}
}

func TestJSONControlsNoTerminalAndIsTheSame(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"say \"no\" \\ über 世界 <>&", "\u009b2J\x7f\x1b\a\n\t", "\u202e\u200b\u2028\u0085", "\U000e0001\U0010ffff😀", "",
	} {
		b, err := JSON(map[string]string{text: text})
		if err != nil || !plainText(string(b)) {
			t.Errorf("%q: got %q, %v", text, b, err)
		}
		var got map[string]string
		if err := json.Unmarshal(b, &got); err != nil || len(got) != 1 || got[text] != text {
			t.Errorf("%q: %q is that of %q, %v", text, b, got, err)
		}
	}
}

func TestArgumentsAreMadePrintableAndFormatsAreNot(t *testing.T) {
	t.Parallel()
	inner := fmt.Errorf("zk: %w", errors.Join(errors.New("a\x1b"), errors.New("b\nc")))
	for _, test := range []struct {
		got  Text
		want string
	}{
		{Sprintf("%s\t%v\n", "a\n", []string{"\x1b"}), "a\\n\t[\\x1b]\n"},
		{Sprintf("%s %d %v %t", []byte("\xff"), 5, time.Second, true), `\xff 5 1s true`},
		{Sprintf("%q|%5s|%-3s|%x", "\x1b", "é", "\a", "\x1b"), `"\x1b"|    é|\a  |1b`},
		{Sprintf("%.*f", 1, 2.25), "2.2"},
		{Sprintf("%s%s", Sprintf("%s\n", "\r"), "\n"), "\\r\n\\n"},
		{Sprintf("%v", inner), `zk: a\x1b; b\nc`},
		{Text(OneLine(fmt.Errorf("%w: %w", inner, errors.New("\u202e")))), `zk: a\x1b; b\nc: \u202e`},
		{Text(OneLine(errors.New(strings.Repeat("\x1b", 1e6))))[:8], `\x1b\x1b`},
	} {
		if string(test.got) != test.want {
			t.Errorf("got %q, want %q", test.got, test.want)
		}
	}
	if long := OneLine(errors.New(strings.Repeat("ä", 1e6))); len(long) > 3*maxMessage {
		t.Errorf("an error of %d bytes is printed", len(long))
	}
	long := &Error{Err: errors.New(strings.Repeat("ä", 1e6)), Hint: "see\x1b --help"}
	if got := OneLine(long); !strings.HasSuffix(got, `…; see\x1b --help`) {
		t.Errorf("the hint is cut off: %q", got[len(got)-50:])
	}
	if got := Excerpt(strings.Repeat("\u202e", 1e6)); len(got) > 3*maxExcerpt {
		t.Errorf("an excerpt has %d bytes", len(got))
	}
}

func FuzzPrintable(f *testing.F) {
	f.Add("\x1b[2J\n\u202e\xff")
	f.Fuzz(func(t *testing.T, text string) {
		got := Printable(text)
		if !plainText(got) || Printable(got) != got || plainText(text) && got != text {
			t.Errorf("%q: got %q", text, got)
		}
		if short := Excerpt(text); !plainText(short) {
			t.Errorf("%q: got %q", text, short)
		}
	})
}
