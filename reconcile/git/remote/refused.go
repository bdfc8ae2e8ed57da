package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"

	"headgate.dev/headgate/reconcile/network"
)

// A refusedError refuses a server, or credentials. It quotes nothing of the server.
type refusedError struct {
	of   part
	text string
}

// A part is what a refusedError is about.
type part int

const (
	ofServer part = iota
	ofCredentials
	ofProxy
)

func (e refusedError) Error() string { return e.text }

// refused returns an error about a server.
func refused(format string, args ...any) error {
	return refusedError{ofServer, fmt.Sprintf(format, args...)}
}

// credentialProblem returns an error about the credentials of a repository.
func credentialProblem(format string, args ...any) error {
	return refusedError{ofCredentials, fmt.Sprintf(format, args...)}
}

// proxyProblem returns an error about a proxy or its credentials.
func proxyProblem(format string, args ...any) error {
	return refusedError{ofProxy, fmt.Sprintf(format, args...)}
}

// An UnreachableError means that the server of a repository gave no answer that Headgate knows.
type UnreachableError struct{ error }

// Unwrap returns the original error.
func (e UnreachableError) Unwrap() error { return e.error }

// silent is the error for a server that stopped answering or never answered.
type silent struct {
	what   string
	within time.Duration
}

func (e silent) Error() string {
	return fmt.Sprintf("the server %s within %s; check the server, or raise the time limit if the repository is large", e.what, e.within)
}

// orSilent returns the error of a request. If ctx ended because the server sent nothing, it returns that reason.
func orSilent(ctx context.Context, err error) error {
	var why silent
	if err != nil && errors.As(context.Cause(ctx), &why) {
		return why
	}
	return err
}

// isOurs reports whether this package wrote the text of an error, so that it quotes nothing of the server.
func isOurs(err error) bool {
	return as[refusedError](err) || as[silent](err) || as[*fs.PathError](err)
}

func as[E error](err error) bool {
	_, is := errors.AsType[E](err)
	return is
}

// Explain adds advice to an error of the network. The text quotes nothing of the server.
func (r Server) Explain(ctx context.Context, err error) error {
	if ended := ctx.Err(); errors.Is(ended, context.DeadlineExceeded) {
		return fmt.Errorf("cannot fetch: it takes too long; raise the time limit if the repository is large: %w", ended)
	} else if ended != nil {
		return ended
	}
	err = unwrapped(err)
	if text := r.answer(err); text != "" {
		return errors.New("cannot fetch: " + text)
	}
	if isOurs(err) {
		return fmt.Errorf("cannot fetch: %w", err)
	}
	return UnreachableError{fmt.Errorf("cannot fetch: %w", network.Foreign(err))}
}

// unwrapped removes an error of go-git that has no Unwrap.
func unwrapped(err error) error {
	for {
		unexpected, is := errors.AsType[*plumbing.UnexpectedError](err)
		if !is {
			return err
		}
		err = unexpected.Err
	}
}

// answer describes what a Git server answered, or returns "" if the error is no answer.
func (r Server) answer(err error) string {
	if errors.Is(err, transport.ErrAuthenticationRequired) && !r.At.auth.given() {
		return "the server wants credentials (or there is no such repository); set a token"
	}
	for _, known := range answers {
		if errors.Is(err, known.err) {
			return known.text
		}
	}
	if code, is := errors.AsType[*githttp.Err](err); is {
		return "the server answered " + code.Response.Status
	}
	if line, is := errors.AsType[*pktline.ErrorLine](err); is {
		return "the server refuses it: " + network.Quote(line.Text)
	}
	return ""
}

// answers describes what a Git server answers over http.
var answers = []struct {
	err  error
	text string
}{
	{transport.ErrAuthenticationRequired, "the server refused the credentials; check that the token is right and has not expired"},
	{transport.ErrAuthorizationFailed, "access is denied; allow the token to read this repository"},
	{transport.ErrRepositoryNotFound, "there is no such repository, or the credentials may not see it"},
}

// foreign is a reader of a server's data. Its errors do not quote the server.
type foreign struct{ io.Reader }

func (f foreign) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if err == nil || err == io.EOF || isOurs(err) {
		return n, err
	}
	return n, network.Foreign(err)
}
