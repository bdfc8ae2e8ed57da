package git

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"unicode"
)

// A server may send the credentials, markup, control characters and very long texts in any field. Errors must quote only plain
// words from it.
func TestHostileServer(t *testing.T) {
	const word, token = "opensesame", "c4n4ry-t0k3n"
	line := func(s string) string { return fmt.Sprintf("%04x%s", len(s)+4, s) }
	cases := map[string]struct {
		reason string
		list   func(w http.ResponseWriter, output string) // nil means a valid list
		pack   func(w http.ResponseWriter, output string)
		want   string
	}{
		"Refused":     {reason: "Git servers may send an error line instead of the list of refs.", list: func(w http.ResponseWriter, output string) { fmt.Fprint(w, line("ERR Access is disabled. "+output)) }, want: "the server refuses it: Access is disabled. …"},
		"ReasonOf401": {reason: "A status line contains a text.", list: func(w http.ResponseWriter, output string) { statusLine(w, "401 "+output) }, want: "refused the credentials"},
		"ReasonOf500": {reason: "Any status line may contain a text.", list: func(w http.ResponseWriter, output string) { statusLine(w, "500 "+output) }, want: "500 Internal Server Error"},
		"NoStatus":    {reason: "The HTTP client quotes an invalid status line.", list: func(w http.ResponseWriter, output string) { statusLine(w, output) }, want: "malformed HTTP"},
		"Type": {reason: "A media type contains a text.", list: func(w http.ResponseWriter, output string) {
			w.Header().Set("Content-Type", "text/"+strings.Fields(output)[0])
		}, want: "the answer is of another type"},
		"Location": {
			reason: "A redirect contains a text.", want: "another.example.org, and Headgate does not send the credentials there",
			list: func(w http.ResponseWriter, output string) {
				w.Header().Set("Location", "http://"+strings.Fields(output)[0]+":x@another.example.org/"+strings.Fields(output)[0]+"?"+strings.Fields(output)[0])
				w.WriteHeader(http.StatusFound)
			},
		},
		"NoLocation": {
			reason: "The HTTP client quotes an invalid URL.", want: "failed to parse Location header",
			list: func(w http.ResponseWriter, output string) {
				w.Header().Set("Location", "http://%zz"+strings.Fields(output)[0])
				w.WriteHeader(http.StatusFound)
			},
		},
		"NoList": {reason: "go-git quotes an invalid list of refs.", list: func(w http.ResponseWriter, output string) {
			fmt.Fprint(w, line("# service=git-upload-pack\n")+"0000"+line(output+" HEAD\x00"))
		}, want: "cannot fetch"},
		"Capability": {reason: "go-git quotes an invalid capability.", list: func(w http.ResponseWriter, output string) {
			fmt.Fprint(w, line("# service=git-upload-pack\n")+"0000"+line(strings.Repeat("a", 40)+" HEAD\x00symref="+output+" "+output+"\n")+"0000")
		}, want: "no branch"},
		"NotOurRef": {reason: "Git servers may send an error line instead of a pack.", pack: func(w http.ResponseWriter, output string) {
			fmt.Fprint(w, line("ERR upload-pack: not our ref "+output))
		}, want: "not our ref"},
		"LaterRefused": {reason: "The error line may follow another line.", pack: func(w http.ResponseWriter, output string) { fmt.Fprint(w, line("NAK\n")+line("ERR "+output)) }, want: "the server refuses it"},
		"Sideband":     {reason: "Errors may come on their own sideband channel.", pack: func(w http.ResponseWriter, output string) { fmt.Fprint(w, line("NAK\n")+line("\x03"+output)) }, want: "unexpected error"},
		"Channel":      {reason: "The channel may be unknown.", pack: func(w http.ResponseWriter, output string) { fmt.Fprint(w, line("NAK\n")+line("\x09"+output)) }, want: "unknown channel"},
		"Progress":     {reason: "Progress is meant for a terminal, which Headgate does not have.", pack: func(w http.ResponseWriter, output string) { fmt.Fprint(w, line("NAK\n")+line("\x02"+output)+"0000") }, want: "cannot unpack what the server sent"},
		"NoAnswer":     {reason: "go-git quotes an invalid response.", pack: func(w http.ResponseWriter, output string) { fmt.Fprint(w, line(output)) }, want: "cannot fetch"},
	}
	h := newHistory(t)
	for name, tc := range cases {
		for _, password := range []string{word, token} {
			t.Run(name+"/"+password, func(t *testing.T) {
				encoded := base64.RawStdEncoding.EncodeToString([]byte("me:" + password))
				output := password + " " + encoded + " \x1b[31m\u202e **bold** [a](http://evil.example/" + password + ") <img> " + strings.Repeat("0123456789abcdef", 100)
				s := serve(h.fixture)
				s.before = func(w http.ResponseWriter, r *http.Request) bool {
					do := tc.pack
					kind := "application/x-git-upload-pack-result"
					if strings.HasSuffix(r.URL.Path, "/info/refs") {
						do, kind = tc.list, "application/x-git-upload-pack-advertisement"
					}
					if do == nil {
						return false
					}
					w.Header().Set("Content-Type", kind)
					do(w, output)
					return true
				}
				s.user, s.token = "me", password
				r := &Repository{URL: s.url(), Cache: t.TempDir(), Auth: Auth{Username: "me", Password: password}}
				_, err := r.Fetch(t.Context(), "main")
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Fatalf("%s\nwant error %q, got %v", tc.reason, tc.want, err)
				}
				if text := err.Error(); len(text) > 400 || strings.ContainsAny(text, "*[<") {
					t.Errorf("%s\n%q", tc.reason, text)
				}
				for e := err; e != nil; e = errors.Unwrap(e) {
					if text := e.Error(); strings.Contains(text, password) || strings.Contains(text, encoded) || strings.ContainsFunc(text, unicode.IsControl) {
						t.Errorf("%s\n%q", tc.reason, text)
					}
				}
			})
		}
	}
}

// statusLine answers with an arbitrary status line.
func statusLine(w http.ResponseWriter, line string) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err) // httptest can
	}
	defer conn.Close()
	fmt.Fprintf(conn, "HTTP/1.1 %s\r\nContent-Length: 0\r\n\r\n", strings.ReplaceAll(line, "\n", " "))
}

func TestShowable(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		ref    string
		want   bool
	}{
		"Branch":    {"Names with slashes, dots and digits are common.", "feature/v1.2_x+y", true},
		"Letters":   {"Names need not be English.", "zufällig/été", true},
		"Longest":   {"The limit counts characters, not bytes.", strings.Repeat("ä", 100), true},
		"TooLong":   {"A server could fill a message with one name.", strings.Repeat("a", 101), false},
		"Markup":    {"Messages appear in comments of pull requests.", "<img>", false},
		"Direction": {"Such characters reverse the rest of a line.", "main\u202e", false},
		"Line":      {"A name must not begin another line.", "main\nerror: x", false},
		"Newline":   {"The end of a name counts as well.", "main\n", false},
		"Dash":      {"A name that begins like a flag would be copied into a command.", "-f", false},
		"Empty":     {"There is nothing to show.", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := showable(tc.ref); got != tc.want {
				t.Errorf("%s showable(%q) = %t, want %t", tc.reason, tc.ref, got, tc.want)
			}
		})
	}
}
