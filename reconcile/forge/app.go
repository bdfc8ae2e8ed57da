package forge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/bradleyfalzon/ghinstallation/v2"
)

// An App is an installation of a GitHub App.
type App struct {
	ID, Installation int64
	// Key is asked before every token for the private key, in PEM, so that it may change.
	Key func(ctx context.Context) (string, error)
}

// Token is how an Account of a repository gets the tokens of an App. They last an hour, and are
// made anew before they end. A transport that is nil is http.DefaultTransport.
func (a App) Token(of Repository, transport http.RoundTripper) func(context.Context) (string, error) {
	var (
		mu    sync.Mutex
		known string // the key
		made  *ghinstallation.Transport
	)
	return func(ctx context.Context) (string, error) {
		key, err := a.Key(ctx)
		if err != nil {
			return "", err
		}
		mu.Lock()
		defer mu.Unlock()
		if made == nil || key != known {
			if made, err = ghinstallation.New(bounded{cmp.Or(transport, http.DefaultTransport)}, a.ID, a.Installation, []byte(key)); err != nil {
				made = nil
				return "", errors.New("GitHub: the private key of the App is none: want it in PEM, as GitHub gives it") // its error may quote some
			}
			made.BaseURL, known = of.api(), key
		}
		token, err := made.Token(ctx)
		if refused, ok := errors.AsType[*ghinstallation.HTTPError](err); ok {
			return "", a.refused(of, refused)
		}
		return token, err
	}
}

// refused is what GitHub makes of the App.
func (a App) refused(of Repository, e *ghinstallation.HTTPError) error {
	is := answer{forge: "GitHub", of: of.String(), doing: "make a token of the App", right: "to be installed there", resp: e.Response, err: e.RootCause}
	if e.Response == nil {
		return is.trouble(time.Now())
	}
	_ = e.Response.Body.Close()
	switch e.Response.StatusCode {
	case http.StatusUnauthorized:
		return fmt.Errorf("GitHub: the App %d is not accepted (401): its id or its private key is wrong, or the clock here", a.ID)
	case http.StatusNotFound:
		return fmt.Errorf("GitHub: the App %d has no installation %d (404)", a.ID, a.Installation)
	}
	return is.trouble(time.Now())
}
