package discovery

// Instances of services, and their JSON, which is that of curator-x-discovery.

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/seed-a3166700/turnstile/internal/attempt"
	"github.com/seed-a3166700/turnstile/zk"
)

// Type says how long an instance stays registered. Its values are those of Curator's ServiceType.
type Type string

const (
	// Dynamic instances are registered for as long as their process lives. It is the default.
	Dynamic Type = "DYNAMIC"
	// DynamicSequential is Dynamic, with a number that the server appends to the name of the instance's node.
	DynamicSequential Type = "DYNAMIC_SEQUENTIAL"
	// Static instances stay registered after their process has ended. Registry.Close unregisters them.
	Static Type = "STATIC"
	// Permanent instances stay registered until they are unregistered one by one.
	Permanent Type = "PERMANENT"
)

// Instance is one copy of a service, as it is registered. Programs that use curator-x-discovery see the same.
type Instance struct {
	Service    string          // the name that clients look for; required
	ID         string          // different for every instance of a service; Register makes up a UUID if it is empty
	Address    string          // a host name or an IP address; Register takes an address of this machine if it is empty
	Port       int             // 0 if there is none
	TLSPort    int             // 0 if there is none; Curator calls it sslPort
	Payload    json.RawMessage // what the service tells its clients; nil for nothing. See Object for Java's view of it
	Registered time.Time       // in milliseconds; Register sets it if it is zero
	Type       Type            // Dynamic if empty
	URI        string          // how URL makes a URL of it, such as "{scheme}://{address}:{port}/api"; may be empty
	Disabled   bool            // clients leave it out, although it is registered
	_          struct{}
}

// record is an instance in JSON. The order of the fields is Curator's.
type record struct {
	Name       string          `json:"name"`
	ID         string          `json:"id"`
	Address    *string         `json:"address"`
	Port       *int            `json:"port"`
	TLSPort    *int            `json:"sslPort"`
	Payload    json.RawMessage `json:"payload"`
	Registered int64           `json:"registrationTimeUTC"`
	Type       Type            `json:"serviceType"`
	URI        *uriSpec        `json:"uriSpec"`
	Enabled    *bool           `json:"enabled,omitempty"` // Curator leaves it out, too, unless it is told otherwise
}

// MarshalJSON encodes an instance as curator-x-discovery does. It fails if the payload is not JSON or the URI is
// malformed.
func (i Instance) MarshalJSON() ([]byte, error) {
	spec, err := parseURI(i.URI)
	if err != nil {
		return nil, err
	}
	r := record{
		Name: i.Service, ID: i.ID, Payload: i.Payload, Registered: i.Registered.UnixMilli(), Type: i.Type, URI: spec,
		Port: present(i.Port), TLSPort: present(i.TLSPort),
	}
	if i.Address != "" {
		r.Address = &i.Address
	}
	if i.Registered.IsZero() {
		r.Registered = 0
	}
	if r.Type == "" {
		r.Type = Dynamic
	}
	if i.Disabled {
		r.Enabled = new(bool)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(r); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// UnmarshalJSON decodes what curator-x-discovery and MarshalJSON have encoded. Fields that it does not know are
// ignored.
func (i *Instance) UnmarshalJSON(raw []byte) error {
	var r record
	if err := json.Unmarshal(raw, &r); err != nil {
		return err
	}
	*i = Instance{
		Service: r.Name, ID: r.ID, Registered: time.UnixMilli(r.Registered), Type: r.Type,
		Disabled: r.Enabled != nil && !*r.Enabled,
	}
	if r.Address != nil {
		i.Address = *r.Address
	}
	if r.Port != nil {
		i.Port = *r.Port
	}
	if r.TLSPort != nil {
		i.TLSPort = *r.TLSPort
	}
	if len(r.Payload) > 0 && !bytes.Equal(r.Payload, []byte("null")) {
		i.Payload = r.Payload
	}
	if i.Type == "" {
		i.Type = Dynamic
	}
	if r.URI != nil {
		i.URI = r.URI.template()
	}
	return nil
}

func present(port int) *int {
	if port == 0 {
		return nil
	}
	return &port
}

// Object returns a payload that Curator reads as a map: an object that says so. Keys that are not strings, and
// values that JSON cannot express, are errors. A payload that is a JSON object without the mark is unreadable for
// Java programs unless they have said which class they expect.
func Object(fields map[string]any) (json.RawMessage, error) {
	const class = "@class"
	if _, ok := fields[class]; ok {
		return nil, attempt.Bad("discovery: the field %s belongs to Java; leave it out", class)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(fields); err != nil {
		return nil, fmt.Errorf("discovery: payload: %w", err)
	}
	rest := bytes.TrimPrefix(bytes.TrimSuffix(b.Bytes(), []byte("\n")), []byte("{"))
	all := []byte(`{"` + class + `":"java.util.LinkedHashMap"`)
	if len(fields) > 0 {
		all = append(all, ',')
	} else {
		rest = []byte("}")
	}
	return append(all, rest...), nil
}

// withDefaults returns the instance as it will be registered, or an error that says what is wrong with it.
func (i Instance) withDefaults(now time.Time) (Instance, error) {
	if err := checkName("service", i.Service); err != nil {
		return i, err
	}
	if i.ID == "" {
		i.ID = newID()
	}
	if err := checkName("id", i.ID); err != nil {
		return i, err
	}
	if i.Type == "" {
		i.Type = Dynamic
	}
	switch i.Type {
	case Dynamic, DynamicSequential, Static, Permanent:
	default:
		return i, attempt.Bad("discovery: unknown type %q; use Dynamic, DynamicSequential, Static or Permanent", i.Type)
	}
	for _, port := range []int{i.Port, i.TLSPort} {
		if port < 0 || port > 65535 {
			return i, attempt.Bad("discovery: port %d; use 1 to 65535, or 0 for none", port)
		}
	}
	if i.Payload != nil && !json.Valid(i.Payload) {
		return i, attempt.Bad("discovery: the payload is not JSON; encode it with json.Marshal or Object")
	}
	if _, err := parseURI(i.URI); err != nil {
		return i, err
	}
	if i.Address == "" {
		address, err := ownAddress()
		if err != nil {
			return i, err
		}
		i.Address = address
	}
	if i.Registered.IsZero() {
		i.Registered = now
	}
	i.Registered = i.Registered.Truncate(time.Millisecond)
	return i, nil
}

// checkName refuses what cannot be the name of a node.
func checkName(what, name string) error {
	if name == "" {
		return attempt.Bad("discovery: the %s is empty; give it a name", what)
	}
	if strings.Contains(name, "/") || zk.ValidatePath("/"+name) != nil {
		const use = "use letters, digits, dots and dashes"
		return attempt.Bad("discovery: %s %.80q cannot be the name of a node; %s", what, name, use)
	}
	return nil
}

// newID returns a random UUID.
func newID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it never fails
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// ownAddress returns the first address of this machine that other machines may reach, and the loopback address if
// there is none.
func ownAddress() (string, error) {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return "", fmt.Errorf("discovery: this machine's address: %w; set Instance.Address", err)
	}
	var six string
	for _, a := range addrs {
		n, ok := a.(*net.IPNet)
		if !ok || n.IP.IsLoopback() || n.IP.IsLinkLocalUnicast() {
			continue
		}
		if n.IP.To4() != nil {
			return n.IP.String(), nil
		}
		if six == "" {
			six = n.IP.String()
		}
	}
	if six != "" {
		return six, nil
	}
	return "127.0.0.1", nil
}
