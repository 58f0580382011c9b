package fence_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-a3166700/turnstile/fence"
)

// A file that is written under a lock: token 8 has been seen, so the holder that had token 7 comes too late.
func ExampleFile() {
	dir, err := os.MkdirTemp("", "fence")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	ctx := context.Background() // hold.Context(), so that a lost lock ends the wait
	report := fence.NewFile(filepath.Join(dir, "report"))

	fmt.Println(report.Write(ctx, 8, []byte("now"))) // hold.Token()
	fmt.Println(report.Write(ctx, 8, []byte("now, and more")))
	err = report.Write(ctx, 7, []byte("then"))
	fmt.Println(strings.ReplaceAll(err.Error(), dir, "."))
	// Output:
	// <nil>
	// <nil>
	// fence: the lock has passed to a later holder: token 7 for "./report" is older than 8
}

// A service that is written to by the holders of a lock, and two of them.
func ExampleHTTP() {
	service := httptest.NewServer(fence.HTTP(fence.NewGate(nil), nil, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "written")
	})))
	defer service.Close()

	for _, token := range []fence.Token{8, 7} {
		client := &http.Client{Transport: &fence.Transport{Token: token}}
		res, err := client.Post(service.URL+"/stock", "text/plain", strings.NewReader("10"))
		if err != nil {
			fmt.Println(err)
			return
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if err := fence.Refusal(res); err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Printf("%s\n", body)
	}
	// Output:
	// written
	// fence: the lock has passed to a later holder: token 7 for "/stock" is older than 8
}
