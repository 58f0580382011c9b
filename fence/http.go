package fence

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// Header is the HTTP header that carries a request's token, in decimal.
const Header = "Turnstile-Token"

// NewestHeader is the HTTP header with which a refusal tells the largest token that has been seen.
const NewestHeader = "Turnstile-Newest-Token"

// grace is how long a request that is cut short may still take to send its answer.
const grace = 5 * time.Second

// HTTP returns a handler that has every request admitted by the gate before next sees it. Resource names what a request is for, one lock's
// worth of things; if it is nil, everything behind next is one resource. It must not return what clients can make up at will, such as
// a path that may not exist, for a gate without a store.
//
// A request is answered here, and next does not see it:
//
//   - 412 Precondition Failed when its token is smaller than the largest seen; that is in the header Turnstile-Newest-Token. The client has lost
//     its lock. Nothing was done, and trying again is of no use.
//   - 428 Precondition Required when it has no token, 400 Bad Request when what it has is not one token;
//   - 503 Service Unavailable when the gate's store fails, or when work of an earlier holder was still under way when the request's context
//     ended. Nothing was done; the client may try again.
//
// 409 Conflict is never given: it stays next's own, for conflicts of the data.
//
// A request that is at work when a larger token comes is cut short: its context ends with ErrStale as the cause, reading its body fails, and so do
// writes of its answer that take longer than five seconds. So a holder that was stopped in the middle of sending or receiving cannot keep out the
// next; what next does besides must heed the context. Requests that read must carry the token, too, if something is written that depends on
// what they read (see the package's page).
//
// Clients set the header with SetHeader or a Transport, and tell a refusal from next's own answers with Refusal.
func HTTP(g *Gate, resource func(*http.Request) string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		values := r.Header.Values(Header)
		if len(values) == 0 {
			http.Error(w, "fence: this needs the token of a lock, in the header "+Header, http.StatusPreconditionRequired)
			return
		}
		token, err := ParseToken(values[0])
		if err != nil || len(values) > 1 {
			http.Error(w, "fence: the header "+Header+" must carry one token, a positive decimal number", http.StatusBadRequest)
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

// interruptible makes reads of the request's body fail once ctx ends by ErrStale, and soon after writes of the answer. Done ends that.
func interruptible(ctx context.Context, w http.ResponseWriter) (done func()) {
	ended := make(chan struct{})
	c := http.NewResponseController(w)
	stop := context.AfterFunc(ctx, func() {
		defer close(ended)
		if errors.Is(context.Cause(ctx), ErrStale) {
			// A writer without deadlines (a recorder, another middleware's) has nothing to interrupt.
			_ = c.SetReadDeadline(time.Unix(1, 0))
			_ = c.SetWriteDeadline(time.Now().Add(grace))
		}
	})
	return func() {
		if stop() {
			return
		}
		<-ended // w must not be used after the handler has returned
		// The connection may be a proxy's, which sends the requests of others on it next: the server renews deadlines for them only if it has
		// some of its own.
		var usual time.Time
		if srv, ok := ctx.Value(http.ServerContextKey).(*http.Server); ok && srv.WriteTimeout > 0 {
			usual = time.Now().Add(srv.WriteTimeout)
		}
		_ = c.SetWriteDeadline(usual)
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
