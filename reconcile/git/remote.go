package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"

	"headgate.dev/headgate/reconcile/network"
)

// Azure DevOps and AWS CodeCommit refuse clients without multi_ack. go-git does not request it by default, because its
// answer to a fetch over ssh is not supported. Over http, every request ends with "done", so the answer is a list of
// ACKs before the pack, which go-git reads. Thin packs stay off: the objects of a pack need their bases in it.
//
//nolint:gochecknoinits // go-git has no other setting
func init() {
	transport.UnsupportedCapabilities = []capability.Capability{capability.ThinPack}
}

// A remote is a repository that is read with Git's smart protocol over https, http or ssh.
type remote struct {
	at        address
	limits    Limits
	transport http.RoundTripper
}

// A conversation with the program git-upload-pack on a server.
type conversation interface {
	AdvertisedReferencesContext(ctx context.Context) (*packp.AdvRefs, error)
	UploadPack(ctx context.Context, req *packp.UploadPackRequest) (*packp.UploadPackResponse, error)
	Close() error
}

// A session is one conversation with a server: a list of refs, and packs on request.
type session struct {
	remote
	refs
	conversation

	can *capability.List
}

// list starts a session with a request for all refs. The caller closes it.
func (r remote) list(ctx context.Context) (*session, error) {
	listing, cancel := context.WithTimeoutCause(ctx, r.limits.Silence, silent{"did not list its refs", r.limits.Silence})
	defer cancel()
	with, err := r.connect(listing)
	if err != nil {
		return nil, r.explain(ctx, orSilent(listing, err))
	}
	s, err := r.ask(listing, with)
	if err == nil {
		return s, nil
	}
	_ = with.Close()
	if err = orSilent(listing, err); errors.Is(err, errEmpty) {
		return nil, err
	}
	return nil, r.explain(ctx, err)
}

// connect starts a conversation. Over http, it sends nothing yet.
func (r remote) connect(ctx context.Context) (conversation, error) {
	if r.at.url.Scheme == "ssh" {
		return r.dial(ctx)
	}
	var auth transport.AuthMethod
	if r.at.auth.given() {
		auth = r.at.auth.basic()
	}
	next := cmp.Or(r.transport, network.Default)
	own, err := r.at.auth.own()
	if err != nil {
		return nil, err
	}
	if own != nil {
		next = own
	}
	with, err := githttp.NewClientWithOptions(&http.Client{
		Transport:     &limited{next: network.Quiet(next, nil), left: r.limits.Bytes, limit: r.limits.Bytes, refs: r.limits.RefBytes},
		CheckRedirect: r.follow,
	}, nil).NewUploadPackSession(r.at.endpoint(), auth)
	return overHTTP{with, own}, err
}

// overHTTP is a conversation that closes its own connections at the end, if it has any.
type overHTTP struct {
	transport.UploadPackSession

	own *network.Own
}

func (o overHTTP) Close() error {
	if o.own != nil {
		o.own.CloseIdleConnections()
	}
	return nil
}

// ask requests the list of refs.
func (r remote) ask(ctx context.Context, with conversation) (*session, error) {
	advertised, err := with.AdvertisedReferencesContext(ctx)
	if errors.Is(err, transport.ErrEmptyRemoteRepository) {
		return nil, errEmpty
	}
	if err != nil {
		return nil, err
	}
	if n := len(advertised.References); n > r.limits.Refs {
		return nil, refused("the server lists %d refs, and the limit is %d; delete branches that are not needed", n, r.limits.Refs)
	}
	s := &session{remote: r, conversation: with, can: advertised.Capabilities}
	s.names, s.peeled = advertised.References, advertised.Peeled
	for name := range s.names {
		if plumbing.ReferenceName(name).Validate() != nil || !strings.HasPrefix(name, "refs/") {
			delete(s.names, name)
		}
	}
	if advertised.Head != nil {
		s.head = *advertised.Head
	}
	for _, symbolic := range advertised.Capabilities.Get(capability.SymRef) {
		if to, ok := strings.CutPrefix(symbolic, "HEAD:refs/heads/"); ok {
			s.main = to
		}
	}
	return s, nil
}

// pack requests all objects that are reachable from want and not from have.
func (s *session) pack(ctx context.Context, want, have []plumbing.Hash) (io.ReadCloser, error) {
	req := packp.NewUploadPackRequestFromCapabilities(s.can)
	req.Wants, req.Haves = want, have
	if s.can.Supports(capability.NoProgress) {
		if err := req.Capabilities.Set(capability.NoProgress); err != nil {
			return nil, err
		}
	}
	res, err := s.upload(ctx, req)
	if err != nil {
		return nil, s.explain(ctx, err)
	}
	kind := sideband.Sideband64k
	switch {
	case req.Capabilities.Supports(capability.Sideband64k):
	case req.Capabilities.Supports(capability.Sideband):
		kind = sideband.Sideband
	default:
		return res, nil
	}
	demux := sideband.NewDemuxer(kind, res)
	return body{foreign{demux}, res}, nil
}

// close ends a session, if there is one.
func (s *session) close() {
	if s != nil {
		_ = s.Close()
	}
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

// upload sends a request for a pack. Reading the answer fails if the server sends nothing for too long. Git sends a
// packet every five seconds while it prepares a pack.
func (s *session) upload(ctx context.Context, req *packp.UploadPackRequest) (io.ReadCloser, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	limit := s.limits.Silence
	timer := time.AfterFunc(limit, func() { cancel(silent{"sent nothing", limit}) })
	res, err := s.UploadPack(ctx, req)
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

// byID reports whether the server accepts requests for commits that no ref names.
func (s *session) byID() bool {
	return s.can.Supports(capability.AllowReachableSHA1InWant) || s.can.Supports("allow-any-sha1-in-want")
}

func (a address) endpoint() *transport.Endpoint {
	host := a.url.Hostname()
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	port, _ := strconv.Atoi(a.url.Port()) // a URL without a port has port 0; url.Parse only accepts digits
	return &transport.Endpoint{Protocol: a.url.Scheme, Host: host, Port: port, Path: strings.TrimRight(a.url.EscapedPath(), "/")}
}

// follow refuses a redirect to another host or scheme if there are credentials. Without credentials, go-git follows
// redirects of the first request, but never from https to http.
func (r remote) follow(req *http.Request, _ []*http.Request) error {
	if !r.at.auth.secret() || req.URL.Scheme == r.at.url.Scheme && strings.EqualFold(req.URL.Host, r.at.url.Host) {
		return nil
	}
	return network.Errorf("it redirects to %s://%s, and Headgate does not send the credentials there; use that URL if you trust it", scheme(req.URL), network.Host(req.URL.Host))
}

func scheme(u *url.URL) string {
	if u.Scheme == "http" {
		return "http"
	}
	return "https" // the client supports no other scheme
}

// explain adds advice to an error of the network.
func (r remote) explain(ctx context.Context, err error) error {
	for {
		unexpected := (*plumbing.UnexpectedError)(nil) // UnexpectedError has no Unwrap
		if !errors.As(err, &unexpected) {
			break
		}
		err = unexpected.Err
	}
	var code *githttp.Err
	var line *pktline.ErrorLine
	switch {
	case ctx.Err() != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("cannot fetch: it takes too long; raise the time limit if the repository is large: %w", ctx.Err())
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, transport.ErrAuthenticationRequired) && !r.at.auth.given():
		return errors.New("cannot fetch: the server wants credentials (or there is no such repository); set a token")
	case errors.Is(err, transport.ErrAuthenticationRequired):
		return errors.New("cannot fetch: the server refused the credentials; check that the token is right and has not expired")
	case errors.Is(err, transport.ErrAuthorizationFailed):
		return errors.New("cannot fetch: access is denied; allow the token to read this repository")
	case errors.Is(err, transport.ErrRepositoryNotFound):
		return errors.New("cannot fetch: there is no such repository, or the credentials may not see it")
	case errors.As(err, &code):
		return fmt.Errorf("cannot fetch: the server answered %s", code.Response.Status)
	case errors.As(err, &line):
		return fmt.Errorf("cannot fetch: the server refuses it: %s", network.Quote(line.Text))
	case isOurs(err):
		return fmt.Errorf("cannot fetch: %w", err)
	default:
		return UnreachableError{fmt.Errorf("cannot fetch: %w", network.Foreign(err))}
	}
}

// An UnreachableError means that the server of a repository gave no answer that Headgate knows.
type UnreachableError struct{ error }

// Unwrap returns the original error.
func (e UnreachableError) Unwrap() error { return e.error }

// isOurs reports whether this package wrote the text of an error, so that it quotes nothing of the server.
func isOurs(err error) bool {
	var pack packError
	var quiet silent
	var file *fs.PathError
	var refused refusedError
	return errors.As(err, &refused) || errors.As(err, &pack) || errors.As(err, &quiet) || errors.As(err, &file) || errors.Is(err, errPack) || errors.Is(err, errDamaged) || errors.Is(err, errReplaced)
}

// limited is a RoundTripper that limits the bytes of a session, and refuses answers that are not from a Git server.
type limited struct {
	next        http.RoundTripper
	left, limit int64
	refs        int64 // maximum size of the list of refs
}

func (g *limited) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := g.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type")) // an invalid header gives ""
	switch {
	case res.StatusCode >= 300: // such a response has no body to limit
	case strings.HasSuffix(req.URL.Path, "/info/refs") && kind != "application/x-git-upload-pack-advertisement":
		_ = res.Body.Close()
		return nil, network.Errorf("the answer is %s and not from a Git server; check that this is the URL of a repository", typeOf(kind))
	default:
		res.Body = body{bounded{res.Body, g}, res.Body}
		if strings.HasSuffix(req.URL.Path, "/info/refs") {
			res.Body = body{&refList{res.Body, g.refs}, res.Body}
		}
	}
	return res, nil
}

// typeOf describes a media type. It only quotes common ones, because the server chooses the text.
func typeOf(kind string) string {
	switch kind {
	case "":
		return "of no type"
	case "text/html", "text/plain", "application/json", "application/xml", "text/xml", "application/octet-stream":
		return kind
	}
	return "of another type"
}

type body struct {
	io.Reader
	io.Closer
}

type bounded struct {
	io.Reader
	g *limited
}

func (b bounded) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if b.g.left -= int64(n); b.g.left < 0 {
		return 0, network.Errorf("the server sends more than %d bytes; raise the limit if that is right", b.g.limit)
	}
	return n, err
}

// A refList limits the list of refs of a server, which go-git reads as a whole.
type refList struct {
	io.Reader

	left int64
}

func (l *refList) Read(p []byte) (int, error) {
	n, err := l.Reader.Read(p)
	if l.left -= int64(n); l.left < 0 {
		return 0, network.Errorf("the list of refs is too long; delete branches that are not needed")
	}
	return n, err
}
