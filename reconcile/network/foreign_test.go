package network

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"
)

// A library quotes a server, and the server may repeat credentials or write what hides the rest of a comment.
func TestForeign(t *testing.T) {
	cases := map[string]struct {
		reason string
		err    error
		want   string
	}{
		"Nil":       {reason: "There may be no error."},
		"Words":     {reason: "What a library writes itself is advice.", err: errors.New("unexpected EOF"), want: "unexpected EOF"},
		"Quoted":    {reason: "A library quotes a header.", err: fmt.Errorf("manifest digest: %q does not match requested digest: %q", "c4n4ry \"sesame", "x"), want: "manifest digest: … does not match requested digest: …"},
		"Open":      {reason: "A quote may have no end.", err: errors.New(`bad header "open sesame`), want: "bad header …"},
		"Page":      {reason: "A token endpoint that answers with a page is quoted whole by the client.", err: errors.New("no token in bearer response:\nthe minutes of the board"), want: "no token in bearer response: …"},
		"Unquoted":  {reason: "A library may quote without quotation marks.", err: errors.New("pkt-line 3: invalid hash: U+007A 'z' (open sesame)"), want: "pkt-line 3: invalid hash: …"},
		"Version":   {reason: "The version of HTTP is a word of libraries.", err: errors.New("net/http: HTTP/1.x transport connection broken: malformed MIME header line: c4n4ry open sesame"), want: "net/http: … transport connection broken: malformed MIME header line: …"},
		"URL":       {reason: "A redirect leads to a URL that the server chose.", err: &url.Error{Op: "Get", URL: "https://x/c4n4ry", Err: errors.New("stopped after 10 redirects")}, want: "stopped after 10 redirects"},
		"Own":       {reason: "Our texts quote nobody.", err: &url.Error{Op: "Get", URL: "https://x/c4n4ry", Err: Errorf("the list of %q is too long", "refs")}, want: `the list of "refs" is too long`},
		"Refused":   {reason: "A user learns which address is refused.", err: fmt.Errorf("get: %w", RefusedError("169.254.169.254")), want: RefusedError("169.254.169.254").Error()},
		"Canceled":  {reason: "The end of a context is known to users.", err: fmt.Errorf("c4n4ry: %w", context.Canceled), want: "context canceled"},
		"Lookup":    {reason: "A wrong name is the most common mistake.", err: &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "git.example.org"}}, want: "lookup git.example.org: no such host"},
		"Dial":      {reason: "A server that is down is the second.", err: &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 443}, Err: errors.New("connect: connection refused")}, want: "dial tcp 127.0.0.1:443: connect: connection refused"},
		"Authority": {reason: "A server writes its certificate.", err: x509.UnknownAuthorityError{Cert: &x509.Certificate{}}, want: "x509: certificate signed by unknown authority"},
		"Name":      {reason: "And the names in it.", err: x509.HostnameError{Host: "git.example.org", Certificate: &x509.Certificate{DNSNames: []string{"c4n4ry.example.org"}}}, want: "x509: certificate is not valid for git.example.org"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := Foreign(tc.err)
			if tc.err == nil {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err.Error() != tc.want || !errors.Is(err, tc.err) {
				t.Errorf("%s\nForeign(%v) = %v, want %s", tc.reason, tc.err, err, tc.want)
			}
			if again := Foreign(fmt.Errorf("get: %w", err)); again.Error() != "get: "+tc.want {
				t.Errorf("once more: %v", again)
			}
		})
	}
}

func TestQuote(t *testing.T) {
	for text, want := range map[string]string{
		"upload-pack: not our ref 0123456789abcdef0123456789abcdef01234567": "upload-pack: not our ref …",
		"Access to this repository has been disabled by staff.":             "Access to this repository has been disabled by staff.",
		"it's gone (see https://x.example/?token=c4n4ry)":                   "it's gone (see …",
		"a\x1b[31m\u202e **b** `c` <img src=x> @team #1 c":                  "… c",
		"status 403, retry in 30s":                                          "status 403, retry in …",
		"\n\n one\r\ntwo\t":                                                 "one two",
		"":                                                                  "",
		strings.Repeat("x", 21):                                             "…",
		strings.Repeat("word ", 1000):                                       strings.Repeat("word ", 24) + "…",
	} {
		if got := Quote(text); got != want {
			t.Errorf("Quote(%q) = %q, want %q", text, got, want)
		}
	}
}

// The server chooses the host of a redirect.
func TestHost(t *testing.T) {
	for host, want := range map[string]string{
		"git.example.org:8443": "git.example.org:8443", "[::1]:80": "[::1]:80", "": "another host",
		"a_b": "another host", "**a**": "another host", "a\u202eb": "another host", strings.Repeat("a.", 60): "another host",
	} {
		if got := Host(host); got != want {
			t.Errorf("Host(%q) = %q, want %q", host, got, want)
		}
	}
}

// FuzzQuote: whatever a server writes, what is shown of it is a short line of words.
func FuzzQuote(f *testing.F) {
	for _, s := range []string{"not our ref", "(", "a-", "'", "9-9", "…", "a…", "\xff", "a/b/c", "!!", "…\u2028…"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := Quote(text)
		if len([]rune(got)) > maxQuote+2 {
			t.Errorf("%q is long", got)
		}
		if rest := strings.Trim(strings.Map(func(r rune) rune {
			if strings.ContainsRune(" .,:;?!()'-/…", r) || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' {
				return -1
			}
			return r
		}, got), ""); rest != "" {
			t.Errorf("Quote(%q) = %q has %q", text, got, rest)
		}
		if Quote(got) != got {
			t.Errorf("Quote(%q) = %q", got, Quote(got))
		}
	})
}
