// Package remote speaks with Git servers over https, http and ssh. It decides what is said to which server, and bounds what a
// server may answer. Package git keeps what a server sends.
//
//	URL ─Parse─► Address ─List─► Session: refs ─Pack─► bytes of a pack
package remote

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/transport"
)

// Azure DevOps and AWS CodeCommit refuse clients without multi_ack. go-git does not request it by default, because its
// answer to a fetch over ssh is not supported. Over http, every request ends with "done", so the answer is a list of
// ACKs before the pack, which go-git reads. Thin packs stay off: the objects of a pack need their bases in it.
//
//nolint:gochecknoinits // go-git has no other setting
func init() {
	transport.UnsupportedCapabilities = []capability.Capability{capability.ThinPack}
}

// ErrEmpty means that a repository has no commit.
var ErrEmpty = errors.New("the repository is empty; push a commit to it first")

// A Server is a repository that is read with Git's smart protocol over https, http or ssh.
type Server struct {
	At        Address
	Limits    Limits
	Transport http.RoundTripper // for http; nil is network.Default
}

// Limits bound what a server may send in a session, and how long it may be silent.
type Limits struct {
	Bytes    int64
	RefBytes int64 // for the list of refs
	Refs     int
	Silence  time.Duration
}

// A conversation with the program git-upload-pack on a server.
type conversation interface {
	AdvertisedReferencesContext(ctx context.Context) (*packp.AdvRefs, error)
	UploadPack(ctx context.Context, req *packp.UploadPackRequest) (*packp.UploadPackResponse, error)
	Close() error
}

// A Session is one conversation with a server: a list of refs, and packs on request.
type Session struct {
	Server
	Refs

	with conversation
	can  *capability.List
}

// Refs are the refs that a server lists.
type Refs struct {
	Head   plumbing.Hash // zero if the default branch has no commit
	Main   string        // the default branch, if it is known
	Names  map[string]plumbing.Hash
	Peeled map[string]plumbing.Hash // targets of annotated tags
}

// List starts a session with a request for all refs. The caller closes it. The error is ErrEmpty if there are none.
func (r Server) List(ctx context.Context) (*Session, error) {
	listing, cancel := context.WithTimeoutCause(ctx, r.Limits.Silence, silent{"did not list its refs", r.Limits.Silence})
	defer cancel()
	with, err := r.connect(listing)
	if err != nil {
		return nil, r.Explain(ctx, orSilent(listing, err))
	}
	s, err := r.ask(listing, with)
	if err == nil {
		return s, nil
	}
	_ = with.Close()
	if err = orSilent(listing, err); errors.Is(err, ErrEmpty) {
		return nil, err
	}
	return nil, r.Explain(ctx, err)
}

// connect starts a conversation. Over http, it sends nothing yet.
func (r Server) connect(ctx context.Context) (conversation, error) {
	if r.At.url.Scheme == "ssh" {
		return r.dial(ctx)
	}
	return r.overHTTP()
}

// ask requests the list of refs.
func (r Server) ask(ctx context.Context, with conversation) (*Session, error) {
	advertised, err := with.AdvertisedReferencesContext(ctx)
	if errors.Is(err, transport.ErrEmptyRemoteRepository) {
		return nil, ErrEmpty
	}
	if err != nil {
		return nil, err
	}
	if n := len(advertised.References); n > r.Limits.Refs {
		return nil, refused("the server lists %d refs, and the limit is %d; delete branches that are not needed", n, r.Limits.Refs)
	}
	return &Session{Server: r, Refs: refsOf(advertised), with: with, can: advertised.Capabilities}, nil
}

// refsOf returns the refs with valid names.
func refsOf(advertised *packp.AdvRefs) Refs {
	refs := Refs{Names: advertised.References, Peeled: advertised.Peeled}
	for name := range refs.Names {
		if plumbing.ReferenceName(name).Validate() != nil || !strings.HasPrefix(name, "refs/") {
			delete(refs.Names, name)
		}
	}
	if advertised.Head != nil {
		refs.Head = *advertised.Head
	}
	for _, symbolic := range advertised.Capabilities.Get(capability.SymRef) {
		if to, ok := strings.CutPrefix(symbolic, "HEAD:refs/heads/"); ok {
			refs.Main = to
		}
	}
	return refs
}

// ByID reports whether the server accepts requests for commits that no ref names.
func (s *Session) ByID() bool {
	return s.can.Supports(capability.AllowReachableSHA1InWant) || s.can.Supports("allow-any-sha1-in-want")
}

// Close ends a session, if there is one.
func (s *Session) Close() {
	if s != nil {
		_ = s.with.Close()
	}
}

// Pack requests all objects that are reachable from want and not from have.
func (s *Session) Pack(ctx context.Context, want, have []plumbing.Hash) (io.ReadCloser, error) {
	req := packp.NewUploadPackRequestFromCapabilities(s.can)
	req.Wants, req.Haves = want, have
	if s.can.Supports(capability.NoProgress) {
		if err := req.Capabilities.Set(capability.NoProgress); err != nil {
			return nil, err
		}
	}
	res, err := s.upload(ctx, req)
	if err != nil {
		return nil, s.Explain(ctx, err)
	}
	kind := sideband.Sideband64k
	switch {
	case req.Capabilities.Supports(capability.Sideband64k):
	case req.Capabilities.Supports(capability.Sideband):
		kind = sideband.Sideband
	default:
		return res, nil
	}
	return body{foreign{sideband.NewDemuxer(kind, res)}, res}, nil
}

// upload sends a request for a pack. Reading the answer fails if the server sends nothing for too long. Git sends a
// packet every five seconds while it prepares a pack.
func (s *Session) upload(ctx context.Context, req *packp.UploadPackRequest) (io.ReadCloser, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	limit := s.Limits.Silence
	timer := time.AfterFunc(limit, func() { cancel(silent{"sent nothing", limit}) })
	res, err := s.with.UploadPack(ctx, req)
	timer.Stop()
	if err != nil {
		err = orSilent(ctx, err)
		cancel(nil)
		return nil, err
	}
	return &watched{ReadCloser: res, ctx: ctx, cancel: cancel, timer: timer, limit: limit}, nil
}

// watched is an answer that fails if it stalls.
type watched struct {
	io.ReadCloser

	ctx    context.Context //nolint:containedctx // it ends with the answer
	cancel context.CancelCauseFunc
	timer  *time.Timer
	limit  time.Duration
}

func (w *watched) Read(p []byte) (int, error) {
	w.timer.Reset(w.limit)
	defer w.timer.Stop() // processing the bytes may take any time
	n, err := w.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		return n, err
	}
	return n, orSilent(w.ctx, err)
}

func (w *watched) Close() error {
	w.timer.Stop()
	defer w.cancel(nil)
	return w.ReadCloser.Close()
}
