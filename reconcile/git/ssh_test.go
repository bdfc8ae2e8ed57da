package git

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"headgate.dev/headgate/fixtures/sshserver"
)

// servedOverSSH returns a server whose key is known, and a Repository with a key that it accepts.
func servedOverSSH(t *testing.T, f *fixture) (*sshserver.Server, *Repository, sshserver.Key) {
	t.Helper()
	host, key := sshserver.NewKey(t, "ed25519", ""), sshserver.NewKey(t, "ed25519", "")
	s := sshserver.Start(t, host)
	s.Accept(key.PublicKey(), true)
	return s, &Repository{URL: s.URL(f.dir), Cache: t.TempDir(), Auth: Auth{Identity: key.PEM, KnownHosts: s.Line(host.PublicKey())}}, key
}

// Every type of deploy key reads every ref, and a second fetch receives only what is new.
func TestFetchOverSSH(t *testing.T) {
	for _, kind := range []string{"ed25519", "ecdsa", "rsa"} {
		for _, passphrase := range []string{"", "open sesame"} {
			t.Run(kind+"/"+passphrase, func(t *testing.T) {
				h := newHistory(t)
				host, key := sshserver.NewKey(t, kind, ""), sshserver.NewKey(t, kind, passphrase)
				s := sshserver.Start(t, host)
				s.Accept(key.PublicKey(), true)
				r := &Repository{URL: s.URL(h.dir), Cache: t.TempDir(), Auth: Auth{Identity: key.PEM, Password: passphrase, KnownHosts: s.Line(host.PublicKey())}}
				for ref, want := range map[string]string{"": h.main.String(), "dev": h.dev.String(), "v1": h.first.String(), "refs/pull/7/head": h.orphan.String(), h.merged.String()[:9]: h.merged.String()} {
					if in, err := r.Fetch(t.Context(), ref); err != nil || in.Revision != want {
						t.Errorf("%q: want %s, got %s, %v", ref, want, in.Revision, err)
					}
				}
				next := h.push("main", map[string]string{"a.yaml": "6"}, h.main)
				in, err := r.Fetch(t.Context(), "main")
				if err != nil || in.Revision != next.String() {
					t.Fatalf("want %s, got %s, %v", next, in.Revision, err)
				}
				if text, err := fs.ReadFile(in.Files, "a.yaml"); string(text) != "6" || err != nil {
					t.Errorf("got %q, %v", text, err)
				}
				if want := strings.TrimPrefix(h.dir, "/"); !strings.HasSuffix(in.Source.Repository, want) || strings.Contains(in.Source.Repository, "@") {
					t.Errorf("the source is %q", in.Source.Repository)
				}
			})
		}
	}
}

// A fetch names what the clone has, and the server sends the rest.
func TestFetchOverSSHMovesWhatIsNew(t *testing.T) {
	f := newFixture(t)
	first := f.push("main", texts(200))
	s, r, _ := servedOverSSH(t, f)
	if _, err := r.Fetch(t.Context(), "main"); err != nil {
		t.Fatal(err)
	}
	next := f.push("main", with(texts(200), "crds/000.yaml", "new"), first)
	small := &Repository{URL: s.URL(f.dir), Cache: r.Cache, Auth: r.Auth, Limits: Limits{Objects: 10}}
	if in, err := small.Fetch(t.Context(), "main"); err != nil || in.Revision != next.String() {
		t.Errorf("want %s with at most 10 objects, got %s, %v", next, in.Revision, err)
	}
	whole := &Repository{URL: s.URL(f.dir), Cache: t.TempDir(), Auth: r.Auth, Limits: Limits{Objects: 10}}
	if _, err := whole.Fetch(t.Context(), "main"); err == nil || !strings.Contains(err.Error(), "objects, and the limit is 10") {
		t.Errorf("a clone: %v", err)
	}
}

// A server sends one pack in a conversation. The request for a commit that no ref names may fail, and then the branches are requested.
func TestSecondPackOverSSH(t *testing.T) {
	h := newHistory(t)
	h.must(os.WriteFile(filepath.Join(h.dir, "config"), []byte("[core]\n\tbare = true\n[uploadpack]\n\tallowReachableSHA1InWant = true\n"), 0o600))
	s, r, _ := servedOverSSH(t, h.fixture)
	if in, err := r.Fetch(t.Context(), h.first.String()); err != nil || in.Revision != h.first.String() {
		t.Errorf("want %s, got %s, %v", h.first, in.Revision, err)
	}
	_ = s.Commands()
	if _, err := r.Fetch(t.Context(), strings.Repeat("ab", 20)); err == nil || !strings.Contains(err.Error(), "no branch, tag or commit") {
		t.Errorf("a commit that does not exist: %v", err)
	}
	if n := len(s.Commands()); n != 2 {
		t.Errorf("want two conversations, got %d", n)
	}
}

// A key may be replaced while a loop runs, and a deploy key may be revoked.
func TestRevokedDeployKey(t *testing.T) {
	h := newHistory(t)
	s, r, key := servedOverSSH(t, h.fixture)
	if _, err := r.Fetch(t.Context(), "main"); err != nil {
		t.Fatal(err)
	}
	s.Accept(key.PublicKey(), false)
	_, err := r.Fetch(t.Context(), "main")
	if err == nil || !strings.Contains(err.Error(), "does not accept the key") || !strings.Contains(err.Error(), ssh.FingerprintSHA256(key.PublicKey())) {
		t.Errorf("the key was revoked: %v", err)
	}
	next := sshserver.NewKey(t, "ecdsa", "")
	s.Accept(next.PublicKey(), true)
	known := r.Auth.KnownHosts
	r = &Repository{URL: r.URL, Cache: r.Cache, Credentials: func(context.Context) (Auth, error) { return Auth{Identity: next.PEM, KnownHosts: known}, nil }}
	if _, err := r.Fetch(t.Context(), "main"); err != nil {
		t.Errorf("the key was replaced: %v", err)
	}
}

// No key is trusted on first use, whatever the form of known_hosts.
func TestHostKeys(t *testing.T) {
	f := newFixture(t)
	f.push("main", map[string]string{"a": "1"})
	host, second, other, authority := sshserver.NewKey(t, "ed25519", ""), sshserver.NewKey(t, "rsa", ""), sshserver.NewKey(t, "ed25519", ""), sshserver.NewKey(t, "ecdsa", "")
	text := func(k sshserver.Key) string { return sshserver.Text(k.PublicKey()) }
	const changed, absent = "another host key than known_hosts lists", "known_hosts has no key of [127.0.0.1]:"
	cases := map[string]struct {
		reason string
		hosts  []ssh.Signer
		known  func(at string) string // at is the host and port, as in known_hosts
		want   string                 // "" is a fetch
		asked  bool                   // the server was asked although it is refused
	}{
		"Hashed":  {reason: "ssh-keygen -H hashes names.", known: func(at string) string { return knownhosts.HashHostname(at) + " " + text(host) }},
		"Several": {reason: "A server may have keys of several types, and known_hosts only one that is not the first choice.", hosts: []ssh.Signer{host, second}, known: func(at string) string { return at + " " + text(second) }},
		"Comments": {reason: "The file has comments and other hosts.", known: func(at string) string {
			return "# c\n\ngit.example.org " + text(other) + "\n" + at + " " + text(host) + " c"
		}},
		"Pattern":        {reason: "A line may have patterns.", known: func(at string) string { return "[127.0.*]:*," + strings.Replace(at, "127", "*", 1) + " " + text(host) }},
		"Empty":          {reason: "Nothing is known.", known: func(string) string { return "" }, want: absent},
		"OtherHost":      {reason: "Another host has the key.", known: func(string) string { return "git.example.org " + text(host) }, want: absent},
		"OtherPort":      {reason: "Another server may run on another port.", known: func(string) string { return "127.0.0.1 " + text(host) }, want: absent},
		"Negated":        {reason: "A pattern may exclude the host.", known: func(at string) string { return "[127.0.0.*]" + at[len("[127.0.0.1]"):] + ",!" + at + " " + text(host) }, want: absent},
		"Changed":        {reason: "Another machine answers.", known: func(at string) string { return at + " " + text(other) }, want: changed, asked: true},
		"ChangedHashed":  {reason: "A hashed name is a name.", known: func(at string) string { return knownhosts.HashHostname(at) + " " + text(other) }, want: changed, asked: true},
		"OtherType":      {reason: "The server has no key of this type.", known: func(at string) string { return at + " " + text(second) }, want: "no host key of a type that known_hosts lists", asked: true},
		"Revoked":        {reason: "A marked key is refused although another line lists it.", known: func(at string) string { return at + " " + text(host) + "\n@revoked " + at + " " + text(host) }, want: "marked @revoked", asked: true},
		"RevokedForAll":  {reason: "A marked key is refused for every name.", known: func(at string) string { return "@revoked * " + text(host) + "\n" + at + " " + text(host) }, want: "marked @revoked", asked: true},
		"OnlyRevoked":    {reason: "A marked key makes no host known.", known: func(at string) string { return "@revoked " + at + " " + text(host) }, want: absent},
		"Authority":      {reason: "An authority certifies host keys.", hosts: []ssh.Signer{sshserver.Certificate(t, host, authority, nil)}, known: func(at string) string { return "@cert-authority " + at + " " + text(authority) }},
		"OtherAuthority": {reason: "The certificate is of another authority.", hosts: []ssh.Signer{sshserver.Certificate(t, host, other, nil)}, known: func(at string) string { return "@cert-authority " + at + " " + text(authority) }, want: "certificate", asked: true},
		"OtherPrincipal": {reason: "The certificate is for another host.", hosts: []ssh.Signer{sshserver.Certificate(t, host, authority, func(c *ssh.Certificate) { c.ValidPrincipals = []string{"c4n4ry.example.org"} })}, known: func(at string) string { return "@cert-authority " + at + " " + text(authority) }, want: "certificate of the server is not valid", asked: true},
		"Expired":        {reason: "The certificate has expired.", hosts: []ssh.Signer{sshserver.Certificate(t, host, authority, func(c *ssh.Certificate) { c.ValidBefore = 1000 })}, known: func(at string) string { return "@cert-authority " + at + " " + text(authority) }, want: "certificate of the server is not valid", asked: true},
		"ForUsers":       {reason: "The certificate is for a user.", hosts: []ssh.Signer{sshserver.Certificate(t, host, authority, func(c *ssh.Certificate) { c.CertType = ssh.UserCert })}, known: func(at string) string { return "@cert-authority " + at + " " + text(authority) }, want: "certificate", asked: true},
		"NoCertificate":  {reason: "The authority's name is no key of the host.", known: func(at string) string { return "@cert-authority " + at + " " + text(authority) }, want: "no host key of a type", asked: true},
		"AuthorityGone": {reason: "The authority is revoked.", hosts: []ssh.Signer{sshserver.Certificate(t, host, authority, nil)}, known: func(at string) string {
			return "@cert-authority " + at + " " + text(authority) + "\n@revoked * " + text(authority)
		}, want: "certificate", asked: true},
		"Malformed": {reason: "A line that cannot be read may be the one that revokes.", known: func(at string) string { return at + " " + text(host) + "\n" + at + " c4n4ry" }, want: "line 2 of known_hosts cannot be read"},
		"Marker":    {reason: "An unknown marker may forbid.", known: func(at string) string { return "@c4n4ry " + at + " " + text(host) }, want: "line 1 of known_hosts cannot be read"},
		"Asterisks": {reason: "Some patterns take hours to match.", known: func(at string) string { return strings.Repeat("*1", 30) + " " + text(host) }, want: "more than 2 asterisks"},
		"Long":      {reason: "The file is of a tenant, and every fetch reads it.", known: func(at string) string { return at + " " + text(host) + "\n" + strings.Repeat("#", 256<<10) }, want: "known_hosts has more than"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.hosts == nil {
				tc.hosts = []ssh.Signer{host}
			}
			s, key := sshserver.Start(t, tc.hosts...), sshserver.NewKey(t, "ed25519", "")
			s.Accept(key.PublicKey(), true)
			known := tc.known(knownhosts.Normalize(s.Addr))
			r := &Repository{URL: s.URL(f.dir), Cache: t.TempDir(), Auth: Auth{Identity: key.PEM, KnownHosts: known}}
			_, err := r.Fetch(t.Context(), "main")
			if tc.want == "" {
				if err != nil {
					t.Errorf("%s\n%v", tc.reason, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("%s\nwant %q, got %v", tc.reason, tc.want, err)
			}
			for _, secret := range []string{"c4n4ry", "AAAA", "SHA256", key.PEM[60:100]} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("%s\n%q has %s", tc.reason, err, secret)
				}
			}
			if len(s.Commands()) > 0 {
				t.Errorf("%s\nthe server was asked for a repository", tc.reason)
			}
			if _, is := errors.AsType[UnreachableError](err); is {
				t.Errorf("%s\nthe server counts as unreachable: %v", tc.reason, err)
			}
		})
	}
}

// What is wrong with a key is said before anything is sent, and never with the key.
func TestIdentity(t *testing.T) {
	h := newHistory(t)
	s, r, _ := servedOverSSH(t, h.fixture)
	locked, open := sshserver.NewKey(t, "ed25519", "open sesame"), sshserver.NewKey(t, "rsa", "")
	for name, tc := range map[string]struct {
		reason, identity, password string
		want                       string
	}{
		"None":           {"A token is no key.", "", "c4n4ry", "ssh needs a private key"},
		"NoPassphrase":   {"The key is encrypted.", locked.PEM, "", "the private key has a passphrase"},
		"Wrong":          {"The passphrase is of another key.", locked.PEM, "c4n4ry", "cannot be decrypted"},
		"Public":         {"The .pub file is beside the other one.", sshserver.Text(open.PublicKey()), "", "the private key cannot be read"},
		"Half":           {"A line got lost.", open.PEM[:300], "", "the private key cannot be read"},
		"Text":           {"A password may be in place of the key.", "c4n4ry", "", "the private key cannot be read"},
		"UnknownKey":     {"The server does not know the key.", open.PEM, "", "does not accept the key"},
		"NeedlessPhrase": {"A key without a passphrase needs none.", open.PEM, "c4n4ry", "does not accept the key"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Repository{URL: r.URL, Cache: t.TempDir(), Auth: Auth{Identity: tc.identity, Password: tc.password, KnownHosts: r.Auth.KnownHosts}}
			_, err := r.Fetch(t.Context(), "main")
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "c4n4ry") || len(err.Error()) > 500 {
				t.Errorf("%s\nwant %q, got %v", tc.reason, tc.want, err)
			}
			if _, is := errors.AsType[UnreachableError](err); is {
				t.Errorf("%s\nthe server counts as unreachable: %v", tc.reason, err)
			}
			if text := fmt.Sprintf("%v %+v %#v %s", r.Auth, r.Auth, r.Auth, r.Auth); strings.Contains(text, "PRIVATE") || strings.Contains(text, "c4n4ry") {
				t.Errorf("the credentials print as %s", text)
			}
		})
	}
	if n := len(s.Commands()); n > 0 {
		t.Errorf("the server ran %d commands", n)
	}
}

// A path may hold everything that a shell and Git give a meaning to.
func TestPathsOverSSH(t *testing.T) {
	for name, dir := range map[string]string{"Quote": "it's", "Bang": "a!b", "Space": "a b", "Shell": "$(touch c4n4ry);`touch c4n4ry`", "Percent": "100%25", "Unicode": "zufällig", "Dash": "-x"} {
		t.Run(name, func(t *testing.T) {
			top := t.TempDir()
			f := fixtureAt(t, filepath.Join(top, dir))
			want := f.push("main", map[string]string{"a": "1"})
			s, r, _ := servedOverSSH(t, f)
			r.URL = s.URL((&url.URL{Path: f.dir}).EscapedPath())
			if in, err := r.Fetch(t.Context(), "main"); err != nil || in.Revision != want.String() {
				t.Errorf("want %s, got %s, %v; the commands were %q", want, in.Revision, err, s.Commands())
			}
			if found, err := filepath.Glob("c4n4ry"); len(found) > 0 || err != nil {
				t.Errorf("the path was run: %v", err)
			}
		})
	}
}

func TestSSHAddress(t *testing.T) {
	for name, tc := range map[string]struct{ raw, want string }{
		"Option":    {"ssh://-oProxyCommand=touch/x", "looks like an option"},
		"User":      {"ssh://-oProxyCommand=touch@host/x", "looks like an option"},
		"Password":  {"ssh://git:c4n4ry@host/x", "holds a password"},
		"NoHost":    {"ssh:///x", "names no host or no repository"},
		"NoPath":    {"ssh://git@host/", "names no host or no repository"},
		"Newline":   {"ssh://git@host/a%0ab", "control character"},
		"Null":      {"ssh://git@host/a%00b", "control character"},
		"UserLine":  {"ssh://g%0ait@host/a", "control character"},
		"Query":     {"ssh://git@host/a?b=c4n4ry", "a query or a fragment"},
		"ScpLike":   {"git@host:team/a.git", "write ssh://USER@HOST/PATH"},
		"Metadata":  {"ssh://git@169.254.169.254/x", "refusing to connect"},
		"OtherName": {"git+ssh://git@host/x", "git+ssh is not supported; use https:// or ssh://"},
	} {
		t.Run(name, func(t *testing.T) {
			key := sshserver.NewKey(t, "ed25519", "")
			r := &Repository{URL: tc.raw, Cache: t.TempDir(), Auth: Auth{Identity: key.PEM, KnownHosts: "* " + sshserver.Text(key.PublicKey())}}
			_, err := r.Fetch(t.Context(), "main")
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "c4n4ry") || strings.ContainsFunc(err.Error(), unicode.IsControl) {
				t.Errorf("%s: want %q, got %q", tc.raw, tc.want, err)
			}
		})
	}
}

// A server that stops answering, or that never stops, ends a fetch and nothing else.
func TestHostileSSHServer(t *testing.T) {
	const word = "c4n4ry"
	endless := func(w io.Writer) {
		junk := bytes.Repeat([]byte("0"), 32<<10)
		for {
			if _, err := w.Write(junk); err != nil {
				return
			}
		}
	}
	const end = "0000"
	list := func(ch ssh.Channel, h history, end string) {
		line := h.main.String() + " refs/heads/main\x00ofs-delta side-band-64k\n"
		_, _ = fmt.Fprintf(ch, "%04x%s%s", len(line)+4, line, end)
	}
	hang := func(ch ssh.Channel) { _, _ = io.Copy(io.Discard, ch); _, _ = ch.SendRequest("x", true, nil) }
	cases := map[string]struct {
		reason string
		answer func(ch ssh.Channel, h history)
		want   string
	}{
		"Silent":     {reason: "The program says nothing.", answer: func(ch ssh.Channel, _ history) { hang(ch) }, want: "did not list its refs within"},
		"HalfList":   {reason: "The list ends in the middle.", answer: func(ch ssh.Channel, _ history) { _, _ = io.WriteString(ch, "00"); hang(ch) }, want: "did not list its refs within"},
		"SilentPack": {reason: "No pack comes.", answer: func(ch ssh.Channel, h history) { list(ch, h, end); hang(ch) }, want: "sent nothing within"},
		"HalfPack": {reason: "The pack ends in the middle.", answer: func(ch ssh.Channel, h history) {
			list(ch, h, end)
			_, _ = io.WriteString(ch, "0008NAK\n000a\x01PACK\x00")
			hang(ch)
		}, want: "sent nothing within"},
		"EndlessList": {reason: "The list has no end.", answer: func(ch ssh.Channel, h history) {
			list(ch, h, "")
			line := fmt.Sprintf("%s refs/heads/%s\n", h.main, strings.Repeat("x", 1000))
			endless(repeat{ch, fmt.Sprintf("%04x%s", len(line)+4, line)})
		}, want: "the list of refs is too long"},
		"EndlessError": {reason: "The standard error has no end.", answer: func(ch ssh.Channel, _ history) { endless(ch.Stderr()) }, want: "sends more than 1048576 bytes"},
		"EndlessPack": {reason: "The pack has no end.", answer: func(ch ssh.Channel, h history) {
			list(ch, h, end)
			_, _ = io.WriteString(ch, "0008NAK\n")
			part := "\x01" + strings.Repeat("0", 1000)
			endless(repeat{ch, fmt.Sprintf("%04x%s", len(part)+4, part)})
		}, want: "sends more than 1048576 bytes"},
		"Escape": {reason: "A message may move the cursor.", answer: func(ch ssh.Channel, _ history) {
			_, _ = io.WriteString(ch.Stderr(), "remote: Access is disabled.\x1b[2J\u202e <b> "+word)
		}, want: "the server refuses it: Access is …"},
		"ErrorLine": {reason: "Git has a line for errors.", answer: func(ch ssh.Channel, _ history) {
			text := "ERR Access is disabled. \x1b[2J" + word
			_, _ = fmt.Fprintf(ch, "%04x%s", len(text)+4, text)
		}, want: "the server refuses it: Access is disabled. …"},
		"Nothing":       {reason: "The program ends at once.", answer: func(ssh.Channel, history) {}, want: "ended the conversation without an answer"},
		"EndsInTheList": {reason: "The program dies in the list.", answer: func(ch ssh.Channel, _ history) { _, _ = io.WriteString(ch, "00ff") }, want: "cannot fetch: "},
		"NoGit":         {reason: "The server greets its users.", answer: func(ch ssh.Channel, _ history) { _, _ = io.WriteString(ch, "Welcome to \x1b[2J"+word+"\n") }, want: "cannot fetch: "},
		"EmptyList":     {reason: "The repository is empty.", answer: func(ch ssh.Channel, _ history) { _, _ = io.WriteString(ch, "0000") }, want: "the repository is empty"},
	}
	h := newHistory(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s, r, _ := servedOverSSH(t, h.fixture)
			s.Instead(func(ch ssh.Channel, _ string) { tc.answer(ch, h) })
			silence := time.Minute
			if strings.Contains(tc.want, "within") {
				silence = 2 * time.Second
			}
			r.Limits = Limits{Silence: silence, RefBytes: 256 << 10}
			if strings.Contains(tc.want, "sends more than") { // ssh reads ahead, so that the limit of the list would come second
				r.Limits.Bytes = 1 << 20
			}
			_, err := r.Fetch(t.Context(), "main")
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("%s\nwant %q, got %v", tc.reason, tc.want, err)
			}
			if text := err.Error(); len(text) > 400 || strings.ContainsAny(text, "<*") || strings.Contains(text, word) || strings.ContainsFunc(text, unicode.IsControl) {
				t.Errorf("%s\n%q", tc.reason, text)
			}
			s.Instead(nil)
			again := &Repository{URL: r.URL, Cache: r.Cache, Auth: r.Auth}
			if _, err := again.Fetch(t.Context(), "main"); err != nil {
				t.Errorf("%s\nthe next fetch: %v", tc.reason, err)
			}
		})
	}
}

// repeat writes a text for every write.
type repeat struct {
	io.Writer

	text string
}

func (r repeat) Write(p []byte) (int, error) {
	if _, err := io.WriteString(r.Writer, r.text); err != nil {
		return 0, err
	}
	return len(p), nil
}

// A server may be silent, talk without end or die before it has shown who it is.
func TestSSHBeforeTheHandshake(t *testing.T) {
	h := newHistory(t)
	_, r, key := servedOverSSH(t, h.fixture)
	for name, tc := range map[string]struct {
		reason string
		answer func(net.Conn)
		want   string
	}{
		"Silent":  {"The server accepts and says nothing.", func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }, "did not list its refs within"},
		"Endless": {"The server talks before it shows its version.", func(c net.Conn) { _, _ = io.Copy(c, rand.Reader) }, "cannot fetch"},
		"Web":     {"The server is another one.", func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 400 c4n4ry\r\n\r\n") }, "cannot fetch"},
		"Dies":    {"The server ends at once.", func(net.Conn) {}, "cannot fetch"},
	} {
		t.Run(name, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer listener.Close()
			go func() {
				for {
					c, err := listener.Accept()
					if err != nil {
						return
					}
					go func() { tc.answer(c); _ = c.Close() }()
				}
			}()
			silent := &Repository{
				URL: "ssh://git@" + listener.Addr().String() + "/x", Cache: t.TempDir(), Limits: Limits{Silence: 2 * time.Second},
				Auth: Auth{Identity: key.PEM, KnownHosts: knownhosts.Line([]string{listener.Addr().String()}, key.PublicKey())},
			}
			_, err = silent.Fetch(t.Context(), "main")
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "c4n4ry") {
				t.Errorf("%s\nwant %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
	if _, err := r.Fetch(t.Context(), "main"); err != nil {
		t.Error(err)
	}
}

// A pass that is cancelled, or that took too long, ends a fetch in every phase.
func TestCancelledSSH(t *testing.T) {
	h := newHistory(t)
	s, r, _ := servedOverSSH(t, h.fixture)
	asked := make(chan struct{})
	s.Instead(func(ch ssh.Channel, _ string) { close(asked); _, _ = io.Copy(io.Discard, ch) })
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	if _, err := r.Fetch(ctx, "main"); !errors.Is(err, context.Canceled) {
		t.Errorf("want a cancelled fetch, got %v", err)
	}
	s.Instead(func(ch ssh.Channel, _ string) { _, _ = io.Copy(io.Discard, ch) })
	r = &Repository{URL: r.URL, Cache: t.TempDir(), Auth: r.Auth, Limits: Limits{Time: time.Second, Silence: time.Second}}
	if _, err := r.Fetch(t.Context(), "main"); err == nil || !strings.Contains(err.Error(), "1s") && !strings.Contains(err.Error(), "takes too long") {
		t.Errorf("want a limit, got %v", err)
	}
}

// A banner is for people. It ends in no message.
func TestSSHBanner(t *testing.T) {
	h := newHistory(t)
	s, r, key := servedOverSSH(t, h.fixture)
	s.Banner("\x1b[2J c4n4ry")
	if _, err := r.Fetch(t.Context(), "main"); err != nil {
		t.Error(err)
	}
	s.Accept(key.PublicKey(), false)
	if _, err := r.Fetch(t.Context(), "main"); err == nil || strings.Contains(err.Error(), "c4n4ry") {
		t.Errorf("got %v", err)
	}
}

// Only the key and the known hosts of the Sync count: no agent, no settings, no keys and no known hosts of the user of the process.
func TestNothingOfTheUserOverSSH(t *testing.T) {
	h := newHistory(t)
	s, r, key := servedOverSSH(t, h.fixture)
	home := t.TempDir()
	dir := filepath.Join(home, ".ssh")
	h.must(os.Mkdir(dir, 0o700))
	for name, text := range map[string]string{"known_hosts": r.Auth.KnownHosts, "id_ed25519": key.PEM, "config": "Host *\n  Hostname 192.0.2.1\n  User nobody\n"} {
		h.must(os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	t.Setenv("HOME", home)
	t.Setenv("SSH_KNOWN_HOSTS", filepath.Join(dir, "known_hosts"))
	t.Setenv("SSH_AUTH_SOCK", filepath.Join(home, "agent"))
	t.Setenv("ALL_PROXY", "socks5://192.0.2.1:1080")
	if _, err := r.Fetch(t.Context(), "main"); err != nil {
		t.Errorf("with the key of the Sync: %v", err)
	}
	for _, auth := range []Auth{{Identity: key.PEM}, {KnownHosts: r.Auth.KnownHosts}} {
		r := &Repository{URL: s.URL(h.dir), Cache: t.TempDir(), Auth: auth}
		if _, err := r.Fetch(t.Context(), "main"); err == nil {
			t.Error("the files of the user were used")
		}
	}
}
