package roundtrip_test

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"

	"github.com/seed-a3166700/turnstile/discovery"
	"github.com/seed-a3166700/turnstile/discovery/roundtrip"
)

func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "ann, bob")
	}))
	defer server.Close()
	host, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		log.Fatal(err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		log.Fatal(err)
	}

	// In a program this is the Provider of a Registry.
	users, err := discovery.NewFixed(
		[]discovery.Instance{{Service: "users", ID: "1", Address: host, Port: n}}, discovery.ProviderConfig{},
	)
	if err != nil {
		log.Fatal(err)
	}
	client := &http.Client{Transport: &roundtrip.Transport{Provider: users}}
	resp, err := client.Get("http://users/list")
	if err != nil {
		log.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(body))
	// Output: ann, bob
}
