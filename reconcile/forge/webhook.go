package forge

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

// Webhooks answers the webhooks of forges. It wakes the subscribers of the branch that was pushed to, or of pull
// requests, and does nothing else. A subscriber reads from its own source what was pushed, so that a webhook can
// only make something happen earlier.
//
//	request ─► size ─► proof, for every secret ─► Event ─► repository ─► seen before? ─► ref ─► Wake
//
// Headgate parses nothing of a request before a secret proves it, and the answer reveals nothing to a sender
// without a secret. The zero value has no subscribers, and refuses everything.
type Webhooks struct {
	Subscribers []Subscriber
	Log         func(Handled) // receives the result of every request; may be nil

	mu      sync.RWMutex // of Subscribers, once requests are served
	reading readers
	seen    deliveries
}

// Subscribe replaces the subscribers.
func (h *Webhooks) Subscribe(all []Subscriber) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Subscribers = all
}

// Join adds a subscriber until it leaves.
func (h *Webhooks) Join(s Subscriber) (leave func()) {
	s.member = new(byte)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Subscribers = append(slices.Clone(h.Subscribers), s) // requests may still read the old ones
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.Subscribers = slices.DeleteFunc(slices.Clone(h.Subscribers), func(other Subscriber) bool { return other.member == s.member })
	}
}

// subscribers returns those whose path was requested.
func (h *Webhooks) subscribers(r *http.Request) []Subscriber {
	place := r.PathValue(PlaceOfWebhooks)
	h.mu.RLock()
	defer h.mu.RUnlock()
	var all []Subscriber
	for _, s := range h.Subscribers {
		if s.Place == place {
			all = append(all, s)
		}
	}
	return all
}

// PlaceOfWebhooks is the part of a path that names the Place of subscribers.
const PlaceOfWebhooks = "place"

// A Subscriber follows a ref of a repository.
type Subscriber struct {
	Name  string // of the subscriber, unlike that of any other one
	Place string // only requests for this place concern the subscriber, so that others cost it nothing
	// Secret returns the webhook's secret. Webhooks calls it for every request. An empty secret or an error proves no request.
	Secret func(ctx context.Context) (string, error)
	Shared string // subscribers with the same text have the same secret, which is asked for once; "" if it is not known
	// Repositories are all names of the repository: clone URLs and paths. The host does not count: a forge often has
	// another name on its own network, and the secret identifies it.
	Repositories []string
	Ref          string // the Git name of a branch or tag, or a range of tags; "" is the default branch
	Wake         func() // must return immediately, like WakePulls
	// WakePulls is called when pull requests may have changed, and for every push, which may be to the branch or the
	// target of a pull request. It may be nil.
	WakePulls func()

	member *byte // identifies a subscriber that joined
}

// Handled is the result of a request.
type Handled struct {
	Forge   string // the apparent sender
	Event   Event  // set if a secret proves the request
	Woken   int    // number of woken subscribers
	Code    int    // HTTP status of the answer
	Message string // text of the answer
}

const (
	// maxWebhook is the maximum size of a request's body. A push of a thousand commits is smaller.
	maxWebhook = 4 << 20
	// maxHeld is the maximum size of the bodies that are being read, together. It limits the memory that senders without a secret
	// can use.
	maxHeld = 16 * maxWebhook
)

func (h *Webhooks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	result := h.handle(w, r)
	if h.Log != nil {
		h.Log(result)
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(result.Code)
	_, _ = io.WriteString(w, result.Message+"\n")
}

// handle checks a request, and wakes the subscribers of its event.
func (h *Webhooks) handle(w http.ResponseWriter, r *http.Request) Handled {
	from := senderOf(r.Header)
	if from == nil {
		return Handled{Code: http.StatusUnauthorized, Message: "the request is not from a supported forge"}
	}
	result := Handled{Forge: from.Name}
	answer := func(code int, text string) Handled {
		result.Code, result.Message = code, text
		return result
	}
	all := h.subscribers(r)
	if len(all) == 0 {
		return answer(http.StatusUnauthorized, unprovenAnswer)
	}
	body := h.reading.begin(http.MaxBytesReader(w, r.Body, maxWebhook), func() {
		_ = http.NewResponseController(w).SetReadDeadline(time.Now()) // without deadlines, the next read ends it
	})
	defer h.reading.end(body)
	d, err := read(body, r.Header)
	if errors.Is(err, errOverflow) {
		return answer(http.StatusServiceUnavailable, "too many requests at a time")
	}
	if _, big := errors.AsType[*http.MaxBytesError](err); big {
		return answer(http.StatusRequestEntityTooLarge, fmt.Sprintf("more than %d bytes", maxWebhook))
	}
	if err != nil {
		return answer(http.StatusBadRequest, "the request cannot be read")
	}
	proven := provenBy(r.Context(), all, from, d)
	if len(proven) == 0 {
		return answer(http.StatusUnauthorized, unprovenAnswer)
	}
	result.Event, err = from.webhook.event(d)
	if err != nil {
		return answer(http.StatusBadRequest, plain(err.Error()))
	}
	if len(result.Event.Refs) == 0 && !result.Event.Pull {
		return answer(http.StatusOK, "nothing to do: the event concerns neither a push nor a pull request")
	}
	proven = slices.DeleteFunc(proven, func(i int) bool { return !all[i].follows(result.Event) })
	if len(proven) == 0 {
		return answer(http.StatusNotFound, "404 page not found")
	}
	proven = slices.DeleteFunc(proven, func(i int) bool { return !h.seen.add(all[i].Name + " " + from.identity(d)) })
	if len(proven) == 0 {
		return answer(http.StatusOK, "nothing to do: seen before")
	}
	for _, i := range proven {
		if all[i].wake(result.Event) {
			result.Woken++
		}
	}
	switch {
	case result.Woken == 0 && result.Event.Pull:
		return answer(http.StatusOK, "nothing to do: no subscriber follows pull requests")
	case result.Woken == 0:
		return answer(http.StatusOK, "nothing to do: no subscriber follows this ref")
	}
	return answer(http.StatusAccepted, "looking")
}

const unprovenAnswer = "no configured secret proves the request"

// provenBy returns the indices of the subscribers whose secret proves a delivery. It tries all secrets, each once, so that its duration
// reveals nothing, and many subscribers with one secret cost as much as one.
func provenBy(ctx context.Context, all []Subscriber, from *Forge, d delivery) []int {
	var proven []int
	shared, proofs := map[string]string{}, map[string]bool{}
	for i, s := range all {
		secret, known := shared[s.Shared]
		if !known {
			var err error
			if secret, err = s.Secret(ctx); err != nil {
				secret = ""
			}
		}
		if s.Shared != "" {
			shared[s.Shared] = secret
		}
		if _, tried := proofs[secret]; !tried {
			proofs[secret] = secret != "" && from.webhook.proves(d, secret)
		}
		if proofs[secret] {
			proven = append(proven, i)
		}
	}
	return proven
}

// readers limits the memory for requests that are being read. A body occupies what has arrived of it, and not a place: slow senders
// leave room for others. If the memory is used up, the request that has been read for the longest time ends. Addresses do not count,
// because all requests have the same behind a proxy, and an attacker has many.
type readers struct {
	mu   sync.Mutex
	held int64
	all  []*reading // the oldest first
}

// A reading is the body of a request on one connection.
type reading struct {
	io.Reader

	of    *readers
	stop  func() // makes a pending Read return
	held  int64
	ended bool
}

// errOverflow ends the reading of a body, because other requests need the memory.
var errOverflow = errors.New("too many requests at a time")

func (r *readers) begin(body io.Reader, stop func()) *reading {
	r.mu.Lock()
	defer r.mu.Unlock()
	one := &reading{Reader: body, of: r, stop: stop}
	r.all = append(r.all, one)
	return one
}

// end frees the memory of a request.
func (r *readers) end(one *reading) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.free(one)
}

func (r *readers) free(one *reading) {
	if one.ended {
		return
	}
	one.ended = true
	r.held -= one.held
	r.all = slices.DeleteFunc(r.all, func(other *reading) bool { return other == one })
}

// hold counts bytes of a request, and ends the oldest requests that leave no room for them. It reports whether the request goes on.
func (r *readers) hold(one *reading, bytes int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for !one.ended && r.held+bytes > maxHeld {
		oldest := r.all[0]
		r.free(oldest)
		oldest.stop()
	}
	if one.ended {
		return false
	}
	one.held += bytes
	r.held += bytes
	return true
}

func (one *reading) Read(p []byte) (int, error) {
	n, err := one.Reader.Read(p)
	if !one.of.hold(one, int64(n)) {
		return 0, errOverflow
	}
	return n, err
}

// A delivery is a request from a forge.
type delivery struct {
	header  http.Header
	body    []byte
	payload []byte // the JSON of the body: all of it, or a field of a form
}

func read(from io.Reader, header http.Header) (delivery, error) {
	body, err := io.ReadAll(from)
	if err != nil {
		return delivery{}, err
	}
	d := delivery{header: header, body: body, payload: body}
	if kind, _, _ := mime.ParseMediaType(header.Get("Content-Type")); kind == "application/x-www-form-urlencoded" {
		form, err := url.ParseQuery(string(body))
		if err != nil {
			return delivery{}, err
		}
		d.payload = []byte(form.Get("payload"))
	}
	return d, nil
}

// wake wakes the subscriber if the event concerns it, and reports whether it does.
func (s Subscriber) wake(e Event) bool {
	pushed := s.matches(e)
	if pushed {
		s.Wake()
	}
	if s.WakePulls != nil {
		s.WakePulls()
	}
	return pushed || s.WakePulls != nil
}

// follows reports whether an event is about the subscriber's repository.
func (s Subscriber) follows(e Event) bool {
	for _, known := range s.Repositories {
		known = pathOf(known)
		for _, named := range e.Repositories {
			if known == named || strings.HasSuffix(known, "/"+named) {
				return true
			}
		}
	}
	return false
}

// matches reports whether an event is a push to the subscriber's ref.
func (s Subscriber) matches(e Event) bool {
	if len(e.Refs) == 0 {
		return false
	}
	ref := s.Ref
	if strings.HasPrefix(ref, "semver:") {
		return slices.ContainsFunc(e.Refs, func(pushed string) bool { return strings.HasPrefix(pushed, "refs/tags/") })
	}
	if back := strings.IndexAny(ref, "~^"); back >= 0 {
		ref = ref[:back] // an ancestor of a branch moves with the branch
	}
	if ref == "" || ref == "HEAD" || ref == "@" {
		return e.Default == "" || slices.Contains(e.Refs, e.Default)
	}
	return slices.ContainsFunc(e.Refs, func(pushed string) bool {
		return pushed == ref || pushed == "refs/heads/"+ref || pushed == "refs/tags/"+ref || pushed == "refs/"+ref
	})
}

// pathOf returns the path of a repository on its forge, which all its names share.
func pathOf(repository string) string {
	path := repository
	if u, err := url.Parse(repository); err == nil && u.Host != "" {
		path = u.Path
	} else if m := scp.FindStringSubmatch(repository); m != nil {
		path = m[2]
	}
	return strings.TrimSuffix(strings.ToLower(strings.Trim(path, "/")), ".git")
}

// maxSeen is the maximum number of remembered deliveries. A delivery that is repeated after that many others only
// causes an unnecessary fetch.
const maxSeen = 1024

// deliveries remembers the most recent deliveries.
type deliveries struct {
	mu    sync.Mutex
	known map[[sha256.Size]byte]bool
	order [][sha256.Size]byte // oldest first
}

// add remembers a delivery, and reports whether it is new.
func (m *deliveries) add(delivery string) bool {
	key := sha256.Sum256([]byte(delivery))
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known[key] {
		return false
	}
	if m.known == nil {
		m.known = map[[sha256.Size]byte]bool{}
	}
	if len(m.order) == maxSeen {
		delete(m.known, m.order[0])
		m.order = slices.Delete(m.order, 0, 1)
	}
	m.known[key] = true
	m.order = append(m.order, key)
	return true
}

// identity returns what distinguishes a delivery from all others. It only uses data that the secret protects, because
// an attacker could change other IDs. If the request contains the secret itself, any ID will do: a sender who can
// copy the request has the secret.
func (f *Forge) identity(d delivery) string {
	id := ""
	if f.webhook.id != nil {
		id = f.webhook.id(d)
	}
	return f.Name + " " + cmp.Or(id, string(d.payload))
}
