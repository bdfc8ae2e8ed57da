package git

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"
	xknownhosts "golang.org/x/crypto/ssh/knownhosts"

	"headgate.dev/headgate/reconcile/network"
)

// This file speaks ssh itself. The transport of go-git takes no context, so that a silent server would stop it for ever; it reads the
// settings and the agent of the user; and it connects everywhere.

// A refusedError refuses a server or a key. It quotes nothing of the server.
type refusedError string

func (e refusedError) Error() string { return string(e) }

func refused(format string, args ...any) error { return refusedError(fmt.Sprintf(format, args...)) }

// parseSSH checks the URL of a repository on an ssh server. No program of ssh runs, but others may copy the URL to one.
func parseSSH(u *url.URL, auth Auth, shown string) (address, error) {
	user := cmp.Or(u.User.Username(), "git")
	_, secret := u.User.Password()
	u.User = nil
	switch {
	case secret:
		return address{}, fmt.Errorf("cannot read repository %q: its URL holds a password, which ssh does not use; leave it out", shown)
	case u.Hostname() == "" || strings.Trim(u.Path, "/") == "":
		return address{}, fmt.Errorf("cannot read repository %q: the URL names no host or no repository", shown)
	case strings.HasPrefix(u.Hostname(), "-") || strings.HasPrefix(user, "-"):
		return address{}, fmt.Errorf("cannot read repository %q: its host or user looks like an option", shown)
	case strings.ContainsFunc(u.Path+user, unicode.IsControl):
		return address{}, fmt.Errorf("cannot read repository %q: its URL has a control character", shown)
	}
	auth.Username = user
	return address{url: u, auth: auth}, nil
}

// command returns the command that serves the repository. The path is quoted as Git does it.
func (a address) command() string {
	path := a.url.Path
	if strings.HasPrefix(path, "/~") { // a home directory on the server
		path = path[1:]
	}
	return "git-upload-pack '" + strings.NewReplacer("'", `'\''`, "!", `'\!'`).Replace(path) + "'"
}

// overSSH is a conversation over one ssh connection.
type overSSH struct {
	remote

	conn    *metered
	session *ssh.Session
	in      io.WriteCloser
	out     io.Reader
	said    beginning // what the server wrote to its standard error
	asked   bool      // for a pack, which a server sends once
}

// dial connects to an ssh server, and starts the program that serves the repository.
func (r remote) dial(ctx context.Context) (*overSSH, error) {
	config, err := r.at.sshConfig()
	if err != nil {
		return nil, err
	}
	conn, err := network.Dial(ctx, r.at.hostPort())
	if err != nil {
		return nil, err
	}
	c := &overSSH{remote: r, conn: &metered{Conn: conn, limit: r.limits.Bytes}}
	if err := c.during(ctx, func() error { return c.start(config) }); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *overSSH) start(config *ssh.ClientConfig) error {
	conn, channels, requests, err := ssh.NewClientConn(c.conn, c.at.hostPort(), config)
	if err != nil {
		return c.at.handshake(err)
	}
	if c.session, err = ssh.NewClient(conn, channels, requests).NewSession(); err != nil {
		return err
	}
	c.session.Stderr = &c.said
	if c.in, err = c.session.StdinPipe(); err != nil {
		return err
	}
	if c.out, err = c.session.StdoutPipe(); err != nil {
		return err
	}
	return c.session.Start(c.at.command())
}

// during calls a function that reads from the connection. The connection is closed when ctx ends before.
func (c *overSSH) during(ctx context.Context, do func() error) error {
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	err := do()
	if !stop() {
		return cmp.Or(ctx.Err(), context.Canceled)
	}
	return c.why(err)
}

// why returns an error with its cause. The layers of ssh only pass on that there is no more.
func (c *overSSH) why(err error) error {
	switch {
	case err == nil:
		return nil
	case c.conn.exceeded.Load():
		return network.Errorf("the server sends more than %d bytes; raise the limit if that is right", c.conn.limit)
	case errors.Is(err, io.EOF) && c.conn.closed.Load():
		return net.ErrClosed
	}
	return err
}

// Read reads the output of the program.
func (c *overSSH) Read(p []byte) (int, error) {
	n, err := c.out.Read(p)
	return n, c.why(err)
}

// Close ends the connection.
func (c *overSSH) Close() error {
	if err := c.conn.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// AdvertisedReferencesContext reads the list of refs, which a server sends first.
func (c *overSSH) AdvertisedReferencesContext(ctx context.Context) (*packp.AdvRefs, error) {
	listed := packp.NewAdvRefs()
	err := c.during(ctx, func() error {
		err := listed.Decode(&refList{c, c.limits.RefBytes})
		if errors.Is(err, packp.ErrEmptyInput) {
			_ = c.session.Wait() // its error is that the program failed
			return c.refusal()
		}
		return err
	})
	switch {
	case errors.Is(err, packp.ErrEmptyAdvRefs), err == nil && listed.IsEmpty():
		return nil, transport.ErrEmptyRemoteRepository
	case err != nil:
		return nil, err
	}
	transport.FilterUnsupportedCapabilities(listed.Capabilities)
	return listed, nil
}

// refusal returns the error for a server that ended the conversation with at most a message.
func (c *overSSH) refusal() error {
	text := strings.TrimSpace(strings.ReplaceAll(c.said.String(), "remote:", " "))
	if text == "" {
		return refused("the server ended the conversation without an answer; check the path of the repository, and that the key may read it")
	}
	return &pktline.ErrorLine{Text: text}
}

// UploadPack requests a pack. The connection is closed when ctx ends, also after the call.
func (c *overSSH) UploadPack(ctx context.Context, req *packp.UploadPackRequest) (*packp.UploadPackResponse, error) {
	if c.asked {
		if err := c.again(ctx); err != nil {
			return nil, err
		}
	}
	c.asked = true
	if err := req.Validate(); err != nil {
		return nil, err
	}
	conn := c.conn
	context.AfterFunc(ctx, func() { _ = conn.Close() })
	// As over http, the list of known commits ends with "done", so that the server has no more questions.
	var text bytes.Buffer
	err := errors.Join(req.UploadRequest.Encode(&text), req.UploadHaves.Encode(&text, false), pktline.NewEncoder(&text).EncodeString("done\n"))
	if err != nil {
		return nil, err
	}
	if _, err := c.in.Write(text.Bytes()); err != nil {
		return nil, c.why(err)
	}
	answer := packp.NewUploadPackResponse(req)
	return answer, answer.Decode(io.NopCloser(c))
}

// again starts another conversation in place of one that is over.
func (c *overSSH) again(ctx context.Context) error {
	next, err := c.dial(ctx)
	if err != nil {
		return err
	}
	if _, err := next.AdvertisedReferencesContext(ctx); err != nil {
		return errors.Join(err, next.Close())
	}
	_ = c.Close()
	c.conn, c.session, c.in, c.out = next.conn, next.session, next.in, next.out
	return nil
}

// hostPort returns the host and port in the form that known_hosts files have.
func (a address) hostPort() string {
	return net.JoinHostPort(strings.ToLower(a.url.Hostname()), cmp.Or(a.url.Port(), "22"))
}

// sshConfig returns who may answer for the host, and who asks. It fails before anything is sent to a host that nobody knows.
func (a address) sshConfig() (*ssh.ClientConfig, error) {
	key, err := signer(a.auth.Identity, a.auth.Password)
	if err != nil {
		return nil, err
	}
	known, err := readKnownHosts(a.auth.KnownHosts)
	if err != nil {
		return nil, err
	}
	accepted := algorithms(known.HostKeys(a.hostPort()))
	if len(accepted) == 0 {
		return nil, a.unknown()
	}
	check := known.HostKeyCallback()
	return &ssh.ClientConfig{
		User: a.auth.Username, Auth: []ssh.AuthMethod{ssh.PublicKeys(key)},
		HostKeyAlgorithms: accepted,
		HostKeyCallback: func(host string, at net.Addr, key ssh.PublicKey) error {
			return a.hostKey(check(host, at, key))
		},
	}, nil
}

// algorithms returns the safe algorithms with which the owners of the known keys sign. The key that an authority certifies may have
// another type than the key of the authority.
func algorithms(known []knownhosts.PublicKey) []string {
	return slices.DeleteFunc(ssh.SupportedAlgorithms().HostKeys, func(name string) bool {
		return !slices.ContainsFunc(known, func(key knownhosts.PublicKey) bool {
			rsa := key.Type() == ssh.KeyAlgoRSA && (name == ssh.KeyAlgoRSASHA256 || name == ssh.KeyAlgoRSASHA512)
			if key.Cert {
				return strings.Contains(name, "-cert-")
			}
			return rsa || name == key.Type()
		})
	})
}

// unknown is the error for a host without a line in known_hosts.
func (a address) unknown() error {
	host := a.url.Hostname()
	if port := a.url.Port(); port != "" && port != "22" {
		host = "[" + host + "]:" + port
	}
	return refused("known_hosts has no key of %s; add the line of the host, after you have compared its key with what its administrator publishes", host)
}

// hostKey words the refusal of a host key.
func (a address) hostKey(err error) error {
	var other *xknownhosts.KeyError
	var revoked *xknownhosts.RevokedError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &other) && len(other.Want) == 0:
		return a.unknown()
	case errors.As(err, &other):
		return refused("the server has another host key than known_hosts lists, so that another machine may answer in its place; compare the new key with what its administrator publishes before you replace the line")
	case errors.As(err, &revoked):
		return refused("the host key of the server is marked @revoked in known_hosts; do not use this server before its administrator has replaced the key")
	}
	return refused("the host certificate of the server is not valid: %s", network.Foreign(err))
}

// handshake words an error of the handshake.
func (a address) handshake(err error) error {
	var none *ssh.AlgorithmNegotiationError
	var ours refusedError
	switch {
	case errors.As(err, &ours):
		return ours
	case errors.As(err, &none) && none.What == "host key":
		return refused("the server has no host key of a type that known_hosts lists for it; compare its keys with what its administrator publishes, and add the line")
	case errors.As(err, &none):
		return refused("the server supports none of the algorithms that are safe: no common %s; upgrade the server", none.What)
	case strings.Contains(err.Error(), "ssh: unable to authenticate"): // there is no type
		return refused("the server does not accept the key; add its public key to the repository as a deploy key%s", a.fingerprint())
	}
	return err
}

// fingerprint returns the fingerprint of the own public key for a message, by which a forge shows the keys that it has.
func (a address) fingerprint() string {
	key, err := signer(a.auth.Identity, a.auth.Password)
	if err != nil {
		return ""
	}
	return " (" + ssh.FingerprintSHA256(key.PublicKey()) + ")"
}

// signer reads a private key.
func signer(identity, passphrase string) (ssh.Signer, error) {
	if strings.TrimSpace(identity) == "" {
		return nil, refused("ssh needs a private key; set identity, and known_hosts with the key of the host")
	}
	key, err := ssh.ParsePrivateKey([]byte(identity))
	if _, missing := errors.AsType[*ssh.PassphraseMissingError](err); missing {
		if passphrase == "" {
			return nil, refused("the private key has a passphrase; set password to it")
		}
		if key, err = ssh.ParsePrivateKeyWithPassphrase([]byte(identity), []byte(passphrase)); err != nil {
			return nil, refused("the private key cannot be decrypted with the passphrase in password")
		}
	}
	if err != nil {
		return nil, refused("the private key cannot be read; it must be an ed25519, ecdsa or rsa key in the format of OpenSSH or PEM, as 'ssh-keygen' writes it")
	}
	return key, nil
}

const (
	maxKnownHosts = 256 << 10 // bytes of known_hosts
	maxWildcards  = 2         // in one pattern, because matching more of them may take hours
)

// readKnownHosts reads lines of a known_hosts file.
func readKnownHosts(lines string) (*knownhosts.HostKeyDB, error) {
	if len(lines) > maxKnownHosts {
		return nil, refused("known_hosts has more than %d bytes; keep only the lines of the hosts of the sources", maxKnownHosts)
	}
	n := 0
	for line := range strings.Lines(lines) {
		n++
		for pattern := range strings.SplitSeq(hostsOf(line), ",") {
			if strings.Count(pattern, "*") > maxWildcards {
				return nil, refused("line %d of known_hosts has a pattern with more than %d asterisks; name the host", n, maxWildcards)
			}
		}
	}
	file, err := os.CreateTemp("", "headgate-known-hosts-") // the library reads only files
	if err != nil {
		return nil, err
	}
	defer os.Remove(file.Name())
	_, err = file.WriteString(lines)
	if err := errors.Join(err, file.Close()); err != nil {
		return nil, err
	}
	known, err := knownhosts.NewDB(file.Name())
	if err != nil {
		_, at, _ := strings.Cut(err.Error(), file.Name()+":") // the rest may quote the line
		line, _, _ := strings.Cut(at, ":")
		return nil, refused("line %s of known_hosts cannot be read; write HOST TYPE KEY, as 'ssh-keyscan' prints it", cmp.Or(line, "?"))
	}
	return known, nil
}

// hostsOf returns the patterns of a line.
func hostsOf(line string) string {
	for word := range strings.FieldsSeq(line) {
		if !strings.HasPrefix(word, "@") {
			return word
		}
	}
	return ""
}

// metered is a connection that fails after a number of bytes from the server.
type metered struct {
	net.Conn

	limit    int64
	received int64 // only the one goroutine that reads uses it
	exceeded atomic.Bool
	closed   atomic.Bool
}

func (m *metered) Close() error {
	m.closed.Store(true)
	return m.Conn.Close()
}

func (m *metered) Read(p []byte) (int, error) {
	n, err := m.Conn.Read(p)
	if m.received += int64(n); m.received > m.limit {
		m.exceeded.Store(true)
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}

// beginning keeps the beginning of what is written to it.
type beginning struct {
	mu   sync.Mutex
	text []byte
}

func (b *beginning) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text = append(b.text, p[:min(len(p), 4<<10-len(b.text))]...)
	return len(p), nil
}

func (b *beginning) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return string(b.text)
}
