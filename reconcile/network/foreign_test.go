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

// The error of a library may quote a server, and the server may send credentials, or text that hides the rest of a comment.
func TestForeign(t *testing.T) {
	cases := map[string]struct {
		reason string
		err    error
		want   string
	}{
		"Nil":       {reason: "There may be no error."},
		"Words":     {reason: "A library's own words help the user.", err: errors.New("unexpected EOF"), want: "unexpected EOF"},
		"Quoted":    {reason: "A library may quote a header.", err: fmt.Errorf("manifest digest: %q does not match requested digest: %q", "c4n4ry \"sesame", "x"), want: "manifest digest: … does not match requested digest: …"},
		"Open":      {reason: "A quotation may have no end.", err: errors.New(`bad header "open sesame`), want: "bad header …"},
		"Page":      {reason: "The client quotes the whole page of a token endpoint.", err: errors.New("no token in bearer response:\nthe minutes of the board"), want: "no token in bearer response: …"},
		"Unquoted":  {reason: "A library may quote a server without quotation marks.", err: errors.New("pkt-line 3: invalid hash: U+007A 'z' (open sesame)"), want: "pkt-line 3: invalid hash: …"},
		"Version":   {reason: "HTTP/1.x is a library's own word and marks the end of its advice.", err: errors.New("net/http: HTTP/1.x transport connection broken: malformed MIME header line: c4n4ry open sesame"), want: "net/http: … transport connection broken: malformed MIME header line: …"},
		"URL":       {reason: "The server chose the URL of a redirect.", err: &url.Error{Op: "Get", URL: "https://x/c4n4ry", Err: errors.New("stopped after 10 redirects")}, want: "stopped after 10 redirects"},
		"Own":       {reason: "Headgate's own errors quote no server.", err: &url.Error{Op: "Get", URL: "https://x/c4n4ry", Err: Errorf("the list of %q is too long", "refs")}, want: `the list of "refs" is too long`},
		"Refused":   {reason: "The user must learn which address is refused.", err: fmt.Errorf("get: %w", RefusedError("169.254.169.254")), want: RefusedError("169.254.169.254").Error()},
		"Canceled":  {reason: "Users know what a cancelled context means.", err: fmt.Errorf("c4n4ry: %w", context.Canceled), want: "context canceled"},
		"Lookup":    {reason: "A wrong host name is the most common mistake.", err: &net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "git.example.org"}}, want: "lookup git.example.org: no such host"},
		"Dial":      {reason: "A server that is down is the second most common problem.", err: &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 443}, Err: errors.New("connect: connection refused")}, want: "dial tcp 127.0.0.1:443: connect: connection refused"},
		"Authority": {reason: "The server chooses its certificate.", err: x509.UnknownAuthorityError{Cert: &x509.Certificate{}}, want: "x509: certificate signed by unknown authority"},
		"Name":      {reason: "The server chooses the names in its certificate.", err: x509.HostnameError{Host: "git.example.org", Certificate: &x509.Certificate{DNSNames: []string{"c4n4ry.example.org"}}}, want: "x509: certificate is not valid for git.example.org"},
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

// FuzzQuote checks that Quote turns any text of a server into a short line of words.
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
