package fence

// The fence around an HTTP service.

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// Header is the HTTP header that carries a request's token, in decimal.
const Header = "Turnstile-Token"

// NewestHeader is the HTTP header of a refusal that carries the largest token that the gate has seen.
const NewestHeader = "Turnstile-Newest-Token"

// grace is how long a request that is cut off may still take to send its response.
const grace = 5 * time.Second

// HTTP returns a handler that calls next for requests that the gate admits. Resource returns the resource of a request,
// one for each lock; if it is nil, everything behind next is one resource. With a gate without a store, resource must
// not return names that clients can invent, such as paths that do not exist: the gate keeps every name.
//
// HTTP answers a request itself, without next, with:
//
//   - 412 Precondition Failed if its token is stale; the header Turnstile-Newest-Token has the largest one. The client
//     has lost its lock, nothing was done, and a retry is pointless.
//   - 428 Precondition Required if it has no token, and 400 Bad Request if it has anything but one valid token.
//   - 503 Service Unavailable if the gate's store fails, or if the request's context ends while work of an earlier
//     holder is running. Nothing was done, and the client may retry.
//
// It never answers 409 Conflict, which is left to next for conflicts of its data.
//
// A larger token cuts off requests that are in progress: their context ends with the cause ErrStale, reads of the body
// fail, and so do writes of the response after five seconds. So a holder that was stopped while sending or receiving
// cannot keep the next holder waiting, if next heeds the context in everything else that it does. A request that only
// reads needs the token, too, if a later write depends on it (see the package's documentation).
//
// Clients set the header with SetHeader or a Transport, and recognize a refusal with Refusal.
func HTTP(g *Gate, resource func(*http.Request) string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		values := r.Header.Values(Header)
		if len(values) == 0 {
			http.Error(w, "fence: no token: set the header "+Header, http.StatusPreconditionRequired)
			return
		}
		token, err := ParseToken(values[0])
		if err != nil || len(values) > 1 {
			http.Error(w, "fence: the header "+Header+" must be one positive decimal number", http.StatusBadRequest)
			return
		}
		name := ""
		if resource != nil {
			name = resource(r)
		}
		served := false
		err = g.Do(r.Context(), name, token, func(ctx context.Context) error {
			served = true
			defer interruptible(ctx, w)()
			next.ServeHTTP(w, r.WithContext(ctx))
			return nil
		})
		if err != nil && !served {
			refuse(w, err)
		}
	})
}

// interruptible makes reads of the request's body fail once ctx ends by ErrStale, and writes of the response after a
// grace period. The caller must call done before the handler returns.
func interruptible(ctx context.Context, w http.ResponseWriter) (done func()) {
	ended := make(chan struct{})
	c := http.NewResponseController(w)
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		if errors.Is(context.Cause(ctx), ErrStale) {
			// It fails for a writer without deadlines, such as a recorder, which has no connection to interrupt.
			_ = c.SetReadDeadline(time.Unix(1, 0))
			_ = c.SetWriteDeadline(time.Now().Add(grace))
		}
	})
	return func() {
		if stop() {
			return
		}
		<-ended // w must not be used after the handler has returned
		// The connection may be a proxy's, and carry other clients' requests next. The server sets new deadlines for
		// them only if it has a WriteTimeout.
		var original time.Time
		if srv, ok := ctx.Value(http.ServerContextKey).(*http.Server); ok && srv.WriteTimeout > 0 {
			original = time.Now().Add(srv.WriteTimeout)
		}
		_ = c.SetWriteDeadline(original)
	}
}

func refuse(w http.ResponseWriter, err error) {
	if stale, ok := errors.AsType[*StaleError](err); ok {
		w.Header().Set(NewestHeader, FormatToken(stale.Newest))
		http.Error(w, "fence: the lock has passed to a later holder; nothing was done", http.StatusPreconditionFailed)
		return
	}
	http.Error(w, "fence: the token could not be admitted; nothing was done", http.StatusServiceUnavailable)
}
