package roundtrip_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"

	"github.com/seed-a3166700/turnstile/discovery"
	"github.com/seed-a3166700/turnstile/discovery/roundtrip"
)

func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "ann, bob")
	}))
	defer server.Close()
	at, _ := net.ResolveTCPAddr("tcp", server.Listener.Addr().String())

	// In a program this is the Provider of a Registry.
	users, err := discovery.NewFixed(
		[]discovery.Instance{{Service: "users", ID: "1", Address: at.IP.String(), Port: at.Port}},
		discovery.ProviderConfig{},
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	client := &http.Client{Transport: &roundtrip.Transport{Provider: users}}
	resp, err := client.Get("http://users/list")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(string(body))
	// Output: ann, bob
}
