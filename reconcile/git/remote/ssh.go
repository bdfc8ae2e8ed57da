package remote

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"golang.org/x/crypto/ssh"

	"headgate.dev/headgate/reconcile/network"
)

// This file speaks ssh itself. The transport of go-git takes no context, so that a silent server would stop it for ever; it reads the
// settings and the agent of the user; and it connects everywhere.

// command returns the command that serves the repository. The path is quoted as Git does it.
func (a Address) command() string {
	path := a.url.Path
	if strings.HasPrefix(path, "/~") { // a home directory on the server
		path = path[1:]
	}
	return "git-upload-pack '" + strings.NewReplacer("'", `'\''`, "!", `'\!'`).Replace(path) + "'"
}

// overSSH is a conversation over ssh. A server sends one pack in a connection, so that a second one needs another connection.
type overSSH struct {
	*program

	server Server
	asked  bool // for the pack of this connection
}

// A program serves a repository at the other end of a connection.
type program struct {
	conn    *metered
	session *ssh.Session
	in      io.WriteCloser
	out     io.Reader
	said    beginning // what the server wrote to its standard error
}

// dial connects to an ssh server, and starts the program that serves the repository.
func (r Server) dial(ctx context.Context) (*overSSH, error) {
	p, err := r.program(ctx)
	if err != nil {
		return nil, err
	}
	return &overSSH{program: p, server: r}, nil
}

func (r Server) program(ctx context.Context) (*program, error) {
	config, err := r.At.sshConfig()
	if err != nil {
		return nil, err
	}
	conn, err := network.Dial(ctx, r.At.hostPort())
	if err != nil {
		return nil, err
	}
	p := &program{conn: &metered{Conn: conn, limit: r.Limits.Bytes}}
	if err := p.during(ctx, func() error { return p.start(r.At, config) }); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

func (p *program) start(at Address, config *ssh.ClientConfig) error {
	conn, channels, requests, err := ssh.NewClientConn(p.conn, at.hostPort(), config)
	if err != nil {
		return at.handshake(err)
	}
	if p.session, err = ssh.NewClient(conn, channels, requests).NewSession(); err != nil {
		return err
	}
	p.session.Stderr = &p.said
	in, noIn := p.session.StdinPipe()
	out, noOut := p.session.StdoutPipe()
	if err := cmp.Or(noIn, noOut); err != nil {
		return err
	}
	p.in, p.out = in, out
	return p.session.Start(at.command())
}

// during calls a function that reads from the connection. The connection is closed when ctx ends before.
func (p *program) during(ctx context.Context, do func() error) error {
	stop := context.AfterFunc(ctx, func() { _ = p.Close() })
	err := do()
	if !stop() {
		return cmp.Or(ctx.Err(), context.Canceled)
	}
	return p.why(err)
}

// why returns an error with its cause. The layers of ssh only pass on that there is no more.
func (p *program) why(err error) error {
	switch {
	case err == nil:
		return nil
	case p.conn.exceeded.Load():
		return tooMuch(p.conn.limit)
	case errors.Is(err, io.EOF) && p.conn.closed.Load():
		return net.ErrClosed
	}
	return err
}

// Read reads the output of the program.
func (p *program) Read(to []byte) (int, error) {
	n, err := p.out.Read(to)
	return n, p.why(err)
}

// Close ends the connection.
func (p *program) Close() error {
	if err := p.conn.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// AdvertisedReferencesContext reads the list of refs, which a server sends first.
func (c *overSSH) AdvertisedReferencesContext(ctx context.Context) (*packp.AdvRefs, error) {
	listed := packp.NewAdvRefs()
	err := c.during(ctx, func() error { return c.decode(listed) })
	if err == nil && listed.IsEmpty() || errors.Is(err, packp.ErrEmptyAdvRefs) {
		return nil, transport.ErrEmptyRemoteRepository
	}
	if err != nil {
		return nil, err
	}
	transport.FilterUnsupportedCapabilities(listed.Capabilities)
	return listed, nil
}

func (c *overSSH) decode(to *packp.AdvRefs) error {
	err := to.Decode(&refList{c, c.server.Limits.RefBytes})
	if errors.Is(err, packp.ErrEmptyInput) {
		_ = c.session.Wait() // its error is that the program failed
		return c.refusal()
	}
	return err
}

// refusal returns the error for a server that ended the conversation with at most a message.
func (p *program) refusal() error {
	text := strings.TrimSpace(strings.ReplaceAll(p.said.String(), "remote:", " "))
	if text == "" {
		return refused("the server ended the conversation without an answer; check the path of the repository, and that the key may read it")
	}
	return &pktline.ErrorLine{Text: text}
}

// UploadPack requests a pack. The connection is closed when ctx ends, also after the call.
func (c *overSSH) UploadPack(ctx context.Context, req *packp.UploadPackRequest) (*packp.UploadPackResponse, error) {
	text, err := encoded(req)
	if err != nil {
		return nil, err
	}
	if c.asked {
		if err := c.again(ctx); err != nil {
			return nil, err
		}
	}
	c.asked = true
	asked := c.program
	context.AfterFunc(ctx, func() { _ = asked.Close() })
	if _, err := c.in.Write(text); err != nil {
		return nil, c.why(err)
	}
	answer := packp.NewUploadPackResponse(req)
	return answer, answer.Decode(io.NopCloser(asked))
}

// encoded returns a request as it is sent. As over http, the list of known commits ends with "done", so that the server has no more questions.
func encoded(req *packp.UploadPackRequest) ([]byte, error) {
	var text bytes.Buffer
	if err := req.Validate(); err != nil {
		return nil, err
	}
	err := errors.Join(req.UploadRequest.Encode(&text), req.UploadHaves.Encode(&text, false), pktline.NewEncoder(&text).EncodeString("done\n"))
	return text.Bytes(), err
}

// again starts another conversation in place of one that is over.
func (c *overSSH) again(ctx context.Context) error {
	next, err := c.server.dial(ctx)
	if err != nil {
		return err
	}
	if _, err := next.AdvertisedReferencesContext(ctx); err != nil {
		return errors.Join(err, next.Close())
	}
	_ = c.Close()
	c.program = next.program
	return nil
}
