package discovery_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/seed-a3166700/turnstile/discovery"
)

// What Curator 5.4.0 writes for these instances.
//
// Promise: 17
func TestJSONIsCurators(t *testing.T) {
	t.Parallel()
	at := time.UnixMilli(1700000000123)
	object, err := discovery.Object(map[string]any{"k": "<v>"})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name string
		in   discovery.Instance
		want string
	}{
		{
			"bare",
			discovery.Instance{Service: "s", ID: "1", Address: "a", Registered: at},
			`{"name":"s","id":"1","address":"a","port":null,"sslPort":null,"payload":null,` +
				`"registrationTimeUTC":1700000000123,"serviceType":"DYNAMIC","uriSpec":null}`,
		},
		{
			"full",
			discovery.Instance{
				Service: "s", ID: "1", Address: "a", Port: 80, TLSPort: 443, Payload: object, Registered: at,
				Type: discovery.Static, URI: "{scheme}://{address}:{port}/x",
			},
			`{"name":"s","id":"1","address":"a","port":80,"sslPort":443,` +
				`"payload":{"@class":"java.util.LinkedHashMap","k":"<v>"},"registrationTimeUTC":1700000000123,` +
				`"serviceType":"STATIC","uriSpec":{"parts":[{"value":"scheme","variable":true},` +
				`{"value":"://","variable":false},{"value":"address","variable":true},{"value":":","variable":false},` +
				`{"value":"port","variable":true},{"value":"/x","variable":false}]}}`,
		},
		{
			"without a time",
			discovery.Instance{Service: "s", ID: "1"},
			`{"name":"s","id":"1","address":null,"port":null,"sslPort":null,"payload":null,` +
				`"registrationTimeUTC":0,"serviceType":"DYNAMIC","uriSpec":null}`,
		},
		{
			"disabled",
			discovery.Instance{Service: "s", ID: "1", Registered: at, Disabled: true},
			`{"name":"s","id":"1","address":null,"port":null,"sslPort":null,"payload":null,` +
				`"registrationTimeUTC":1700000000123,"serviceType":"DYNAMIC","uriSpec":null,"enabled":false}`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := test.in.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			var back discovery.Instance
			if err := json.Unmarshal(got, &back); err != nil {
				t.Fatal(err)
			}
			again, err := back.MarshalJSON()
			if err != nil || string(again) != test.want {
				t.Errorf("after reading it back: %s, %v", again, err)
			}
		})
	}
}

func TestUnknownFieldsAreIgnoredAndAbsentOnesAreDefaults(t *testing.T) {
	t.Parallel()
	var i discovery.Instance
	if err := json.Unmarshal([]byte(`{"name":"s","id":"1","new":{"x":1}}`), &i); err != nil {
		t.Fatal(err)
	}
	if i.Disabled || i.Type != discovery.Dynamic || i.Payload != nil || i.Port != 0 {
		t.Errorf("%+v", i)
	}
}

func TestEmptyObjectIsReadableForJava(t *testing.T) {
	t.Parallel()
	raw, err := discovery.Object(nil)
	if err != nil || string(raw) != `{"@class":"java.util.LinkedHashMap"}` {
		t.Errorf("%s, %v", raw, err)
	}
	if _, err := discovery.Object(map[string]any{"@class": 1}); err == nil {
		t.Error("a field named @class is accepted")
	}
}

func TestURLs(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		in   discovery.Instance
		want string
	}{
		{discovery.Instance{Address: "a", Port: 80}, "http://a:80"},
		{discovery.Instance{Address: "a", Port: 80, TLSPort: 443}, "https://a:443"},
		{discovery.Instance{Address: "::1", Port: 80}, "http://[::1]:80"},
		{discovery.Instance{Address: "::1"}, "http://[::1]"},
		{
			discovery.Instance{
				Service: "s", ID: "7", Address: "a", Port: 1, TLSPort: 2, Registered: time.UnixMilli(5),
				Type: discovery.Static,
				URI: "{ scheme }-{name}-{id}-{address}-{port}-{ssl-port}-{registration-time-utc}-{service-type}-" +
					"{[}{]}-{no}.",
			},
			"https-s-7-a-1-2-5-STATIC-{}-.",
		},
	} {
		if got := test.in.URL(); got != test.want {
			t.Errorf("%s instead of %s", got, test.want)
		}
	}
}

func TestMalformedURIsAreErrors(t *testing.T) {
	t.Parallel()
	for _, uri := range []string{"{", "a}b", "{a{b}}", "{address"} {
		if _, err := (discovery.Instance{Service: "s", ID: "1", URI: uri}).MarshalJSON(); err == nil {
			t.Errorf("%s is accepted", uri)
		}
	}
}

func TestNullIsNoPayload(t *testing.T) {
	t.Parallel()
	var i discovery.Instance
	if err := json.Unmarshal([]byte(`{"name":"s","id":"1","payload":null}`), &i); err != nil || i.Payload != nil {
		t.Errorf("%q, %v", i.Payload, err)
	}
}

func TestBracesOfJavaProgramsStayText(t *testing.T) {
	t.Parallel()
	raw := `{"name":"s","id":"1","address":"h","uriSpec":{"parts":[{"value":"a{b}","variable":false},` +
		`{"value":"address","variable":true}]}}`
	var i discovery.Instance
	if err := json.Unmarshal([]byte(raw), &i); err != nil {
		t.Fatal(err)
	}
	if i.URI != "a{[}b{]}{address}" || i.URL() != "a{b}h" {
		t.Errorf("%s, %s", i.URI, i.URL())
	}
}
