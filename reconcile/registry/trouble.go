package registry

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"headgate.dev/headgate/reconcile/network"
)

// A Trouble is a problem with a registry that a user may be able to solve.
type Trouble string

// The troubles.
const (
	Unauthorised Trouble = "Unauthorised" // the registry refuses the credentials, or requires some
	UnknownHost  Trouble = "UnknownHost"  // the name of the host has no address
	TimedOut     Trouble = "TimedOut"     // no answer came in time
	PlainHTTP    Trouble = "PlainHTTP"    // the registry does not speak TLS
	Untrusted    Trouble = "Untrusted"    // an unknown authority signed the certificate
	Unreachable  Trouble = "Unreachable"  // there is no connection
)

// An Error is a registry error for which there is advice. Its text is the text of the original error.
type Error struct {
	Host    string
	Trouble Trouble

	error
}

// Unwrap returns the original error.
func (e Error) Unwrap() error { return e.error }

// foreign returns an error of the registry's client whose text quotes nothing that the registry chose, such as the
// URL of a redirect. It keeps the status and the codes of a response.
func foreign(err error) error {
	if forbidden, is := errors.AsType[forbiddenError](err); is {
		return network.Reworded(forbidden.Error(), err)
	}
	if elsewhere, is := errors.AsType[elsewhereError](err); is {
		return network.Reworded(elsewhere.Error(), err)
	}
	answer, answered := errors.AsType[*transport.Error](err)
	if !answered {
		return network.Foreign(err)
	}
	text := fmt.Sprintf("%d %s", answer.StatusCode, http.StatusText(answer.StatusCode))
	if len(answer.Errors) > 0 { // the codes that network.RegistryCodes kept
		text = answer.Errors[0].String()
	}
	if answer.Request != nil {
		text = network.Host(answer.Request.URL.Host) + ": " + text
	}
	return network.Reworded(text, err)
}

// errPlainHTTP means that credentials were not sent to a registry without TLS.
var errPlainHTTP = network.Errorf("it requires credentials, but does not support TLS")

// troubled returns the error of a request to a host, as an Error if there is advice for it.
func troubled(host string, err error) error {
	if _, is := errors.AsType[Error](err); is || err == nil {
		return err
	}
	if of := troubleOf(err); of != "" {
		return Error{host, of, err}
	}
	return err
}

func troubleOf(err error) Trouble {
	if _, is := errors.AsType[forbiddenError](err); is {
		return ""
	}
	if answer, answered := errors.AsType[*transport.Error](err); answered {
		if answer.StatusCode == http.StatusUnauthorized || answer.StatusCode == http.StatusForbidden {
			return Unauthorised
		}
		return ""
	}
	var (
		unknown   *net.DNSError
		authority x509.UnknownAuthorityError
		name      x509.HostnameError
		network   net.Error
		operation *net.OpError
	)
	switch {
	case errors.Is(err, http.ErrSchemeMismatch), errors.Is(err, errPlainHTTP):
		return PlainHTTP
	case errors.As(err, &unknown):
		return UnknownHost
	case errors.As(err, &authority), errors.As(err, &name):
		return Untrusted
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return TimedOut
	case errors.As(err, &operation):
		return Unreachable
	}
	return ""
}
