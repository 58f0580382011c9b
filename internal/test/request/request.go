// Package request asks HTTP servers in tests.
package request

import (
	"io"
	"net/http"
	"testing"
)

// Fetch returns the answer to a request without a body. It fails the test if there is none.
func Fetch(tb testing.TB, method, url string) (status int, body string) {
	tb.Helper()
	req, err := http.NewRequestWithContext(tb.Context(), method, url, http.NoBody)
	if err != nil {
		tb.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		tb.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		tb.Fatal(err)
	}
	return resp.StatusCode, string(b)
}
