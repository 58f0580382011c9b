package discovery

// URLs of instances. A URL is made from a template with variables in braces, which Curator stores in parts.

import (
	"net"
	"strconv"
	"strings"

	"github.com/seed-a3166700/turnstile/internal/attempt"
)

// uriSpec is a template in Curator's form.
type uriSpec struct {
	Parts []uriPart `json:"parts"`
}

// uriPart is a text, or the name of a variable.
type uriPart struct {
	Value    string `json:"value"`
	Variable bool   `json:"variable"`
}

// Two variables stand for braces, which have no other way into a template.
const (
	openBrace  = "["
	closeBrace = "]"
)

// parseURI splits a template at its braces. It returns nil for the empty template.
func parseURI(template string) (*uriSpec, error) {
	if template == "" {
		return nil, nil //nolint:nilnil // an instance without a template has none in JSON, either
	}
	spec := &uriSpec{Parts: []uriPart{}}
	for rest := template; rest != ""; {
		text, after, found := strings.Cut(rest, "{")
		if strings.Contains(text, "}") {
			return nil, attempt.Bad("discovery: URI %.80q has a } without a {; write {]} for a brace", template)
		}
		if text != "" {
			spec.Parts = append(spec.Parts, uriPart{Value: text})
		}
		if !found {
			break
		}
		name, after, found := strings.Cut(after, "}")
		if !found || strings.Contains(name, "{") {
			return nil, attempt.Bad("discovery: URI %.80q has a { without a }; write {[} for a brace", template)
		}
		spec.Parts = append(spec.Parts, uriPart{Value: strings.TrimSpace(name), Variable: true})
		rest = after
	}
	return spec, nil
}

// template is the opposite of parseURI.
func (s *uriSpec) template() string {
	braces := strings.NewReplacer("{", "{"+openBrace+"}", "}", "{"+closeBrace+"}")
	var b strings.Builder
	for _, p := range s.Parts {
		if p.Variable {
			b.WriteString("{" + p.Value + "}")
		} else {
			_, _ = braces.WriteString(&b, p.Value) // a Builder takes everything
		}
	}
	return b.String()
}

// URL returns the instance's URL: its URI with the variables filled in, or "{scheme}://{address}:{port}" if it has
// none. The variables are scheme ("https" if there is a TLS port, "http" otherwise), name, id, address, port, ssl-port,
// registration-time-utc and service-type; {[} and {]} are braces. As with Curator, a variable that has no value or is
// unknown is empty. Without a URI, the port is the TLS port if there is one, and is left out if there is none.
func (i Instance) URL() string {
	if i.URI == "" {
		return i.defaultURL()
	}
	spec, err := parseURI(i.URI)
	if err != nil {
		return i.defaultURL() // Register refuses such a template
	}
	var b strings.Builder
	for _, p := range spec.Parts {
		if p.Variable {
			b.WriteString(i.variable(p.Value))
		} else {
			b.WriteString(p.Value)
		}
	}
	return b.String()
}

func (i Instance) defaultURL() string { return i.scheme() + "://" + i.HostPort() }

// HostPort returns the instance's address and port for a dialer: the TLS port if there is one. An IPv6 address stands
// in brackets. If the instance has no port it is the address alone.
func (i Instance) HostPort() string {
	port := i.TLSPort
	if port == 0 {
		port = i.Port
	}
	if port == 0 {
		if strings.Contains(i.Address, ":") {
			return "[" + i.Address + "]"
		}
		return i.Address
	}
	return net.JoinHostPort(i.Address, strconv.Itoa(port))
}

func (i Instance) scheme() string {
	if i.TLSPort != 0 {
		return "https"
	}
	return "http"
}

func (i Instance) variable(name string) string {
	number := func(port int) string {
		if port == 0 {
			return ""
		}
		return strconv.Itoa(port)
	}
	switch name {
	case "scheme":
		return i.scheme()
	case "name":
		return i.Service
	case "id":
		return i.ID
	case "address":
		return i.Address
	case "port":
		return number(i.Port)
	case "ssl-port":
		return number(i.TLSPort)
	case "registration-time-utc":
		return strconv.FormatInt(i.Registered.UnixMilli(), 10)
	case "service-type":
		return string(i.Type)
	case openBrace:
		return "{"
	case closeBrace:
		return "}"
	}
	return ""
}
