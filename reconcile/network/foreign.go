package network

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// Foreign returns an error whose text is safe to show to the author of a commit. Libraries quote data of a server: header values,
// URLs of redirects, error lines. Such a text may repeat credentials, be a page long, or hold Markdown and control characters.
// Errors of Errorf and of this package keep their text. errors.Is and errors.As still find the cause.
func Foreign(err error) error {
	if err == nil {
		return nil
	}
	if _, done := errors.AsType[foreignError](err); done {
		return err
	}
	return Reworded(textOf(err), err)
}

// Reworded returns an error with our text for a cause that quotes a server. errors.Is and errors.As still find the cause.
func Reworded(text string, cause error) error { return foreignError{text, cause} }

// A foreignError has no Unwrap, so that code that prints the chain of errors does not print the cause.
type foreignError struct {
	text  string
	cause error
}

func (e foreignError) Error() string        { return e.text }
func (e foreignError) Is(target error) bool { return errors.Is(e.cause, target) }
func (e foreignError) As(target any) bool   { return errors.As(e.cause, target) }

// Errorf returns an error that quotes nothing of a server, so that Foreign keeps its text.
func Errorf(format string, args ...any) error { return ownError(fmt.Sprintf(format, args...)) }

type ownError string

func (e ownError) Error() string { return string(e) }

func textOf(err error) string {
	if own, is := errors.AsType[ownError](err); is {
		return own.Error()
	}
	if refused, is := errors.AsType[RefusedError](err); is {
		return RefusedError(Host(string(refused))).Error()
	}
	if plain, is := errors.AsType[PlainError](err); is {
		return PlainError(Host(string(plain))).Error()
	}
	if proxy, is := errors.AsType[ProxyError](err); is {
		return proxy.Error() + "; check the proxy of this machine (HTTPS_PROXY)"
	}
	for _, known := range []error{context.Canceled, context.DeadlineExceeded, io.ErrUnexpectedEOF, io.EOF, http.ErrSchemeMismatch} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	var (
		unknown   *net.DNSError
		operation *net.OpError
		authority x509.UnknownAuthorityError
		name      x509.HostnameError
		invalid   x509.CertificateInvalidError
		noTLS     tls.RecordHeaderError
	)
	switch {
	case errors.As(err, &unknown):
		return "lookup " + Host(unknown.Name) + ": " + Quote(unknown.Err)
	case errors.As(err, &authority):
		return "x509: certificate signed by unknown authority"
	case errors.As(err, &name):
		return "x509: certificate is not valid for " + Host(name.Host)
	case errors.As(err, &invalid):
		return x509.CertificateInvalidError{Reason: invalid.Reason}.Error()
	case errors.As(err, &noTLS):
		return "tls: " + Quote(strings.TrimPrefix(noTLS.Msg, "tls: "))
	case errors.As(err, &operation):
		at := ""
		if operation.Addr != nil {
			at = " " + Host(operation.Addr.String())
		}
		return operation.Op + " " + operation.Net + at + ": " + quoteLibrary(operation.Err)
	}
	return quoteLibrary(err)
}

// quoted matches the parts of a library's text that quote a server: up to the next quotation mark, or everything
// after a line break. requested matches the method and URL of a request.
var (
	quoted    = regexp.MustCompile(`"(?:[^"\\\n]|\\.)*"?|\n(?s:.*)`)
	requested = regexp.MustCompile(`(?:Get|Head|Post) "(?:[^"\\\n]|\\.)*": `)
)

// quoteLibrary returns the text of a library's error without quotes of a server. A library may quote without
// quotation marks, so the result ends at the first word that is not plain.
func quoteLibrary(err error) string {
	words := strings.Fields(quoted.ReplaceAllString(requested.ReplaceAllString(err.Error(), ""), " … "))
	foreign := slices.IndexFunc(words, func(w string) bool {
		return strings.Trim(w, "….,:;()") != "" && !strings.HasPrefix(w, "HTTP/1.") && !isWord(w)
	})
	if foreign >= 0 {
		words = append(words[:foreign], "…")
	}
	return Quote(strings.Join(words, " "))
}

// Host returns a text if it looks like a host with an optional port. A server chooses the host of a redirect.
func Host(host string) string {
	if len(host) > 100 || host == "" || strings.Trim(strings.ToLower(host), "abcdefghijklmnopqrstuvwxyz0123456789.-:[]") != "" {
		return "another host"
	}
	return host
}

const (
	maxQuote = 120 // maximum characters of a quote
	maxWord  = 20  // maximum letters of a word
)

// Quote returns the plain words in a server's text as one short line. An ellipsis replaces everything else, such as
// tokens, hashes, URLs, markup and control characters.
func Quote(text string) string {
	var kept []string
	length := 0
	for i, word := range strings.Fields(text) {
		if !isWord(word) {
			word = "…"
		}
		if word == "…" && i > 0 && kept[len(kept)-1] == "…" {
			continue
		}
		if length += len([]rune(word)) + 1; length > maxQuote {
			kept = append(kept, "…")
			break
		}
		kept = append(kept, word)
	}
	return strings.Join(kept, " ")
}

// isWord reports whether a text is a word, or a number no longer than a status code or a port, with optional punctuation.
func isWord(text string) bool {
	text = strings.TrimRight(strings.TrimLeft(text, "("), ".,:;?!)")
	letters, digits := 0, 0
	for i, r := range text {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z':
			letters++
		case '0' <= r && r <= '9':
			digits++
		case (r == '-' || r == '\'' || r == '/') && i > 0 && i < len(text)-1:
		default:
			return false
		}
	}
	return letters <= maxWord && digits <= 5 && (letters == 0) != (digits == 0) && len(text) <= letters+digits+2
}
