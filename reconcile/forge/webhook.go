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
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// Webhooks answers the webhooks of forges. It wakes whoever follows the branch that was
// pushed to, or pull requests, and does nothing else: what was pushed, and which ones are open, is
// read from where the subscriber reads it, so that a webhook can make something happen sooner, and
// never something else.
//
//	request ─► size ─► proof, for every secret ─► Event ─► repository ─► seen before? ─► ref ─► Wake
//
// Nothing of a request is parsed before one secret proves it, and who knows none of them
// learns nothing from the answer. The zero value has no subscribers, and refuses everything.
type Webhooks struct {
	Subscribers []Subscriber
	Tell        func(Heard) // hears what came of every request; nil is nobody

	reading atomic.Int32
	seen    memory
}

// A Subscriber follows a ref of a repository.
type Subscriber struct {
	// Secret is what the webhook was given on the forge. It is asked for with every request; where
	// it is empty, or there is an error, nothing is proven.
	Secret func(ctx context.Context) (string, error)
	// Repositories are the repository under all its names: URLs that it is cloned from, paths.
	// The host counts for nothing: a forge often goes by another name on its own network, and it
	// is the secret that tells it from others.
	Repositories []string
	Ref          string // as Git names it: a branch, a tag; "" is the default branch
	Wake         func() // returns at once, as WakePulls
	// WakePulls hears that pull requests may not be what they were, also of every push: one may
	// have been to the branch of one, or to what it is to be merged into. nil is nobody.
	WakePulls func()
}

// Heard is what came of a request.
type Heard struct {
	Forge string // who it seems to be from
	Event Event  // of those that one secret proves
	Woken int    // subscribers
	Code  int    // of the answer, and
	Said  string // its text
}

const (
	// mostWebhook bounds the body of a request. A push of a thousand commits has less.
	mostWebhook = 4 << 20
	// mostReading bounds the requests that are read at a time, and with them what strangers can
	// have us hold in memory.
	mostReading = 16
)

func (h *Webhooks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	heard := h.hear(w, r)
	if h.Tell != nil {
		h.Tell(heard)
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(heard.Code)
	_, _ = io.WriteString(w, heard.Said+"\n")
}

// hear finds out what a request is, and wakes those whom it is for.
func (h *Webhooks) hear(w http.ResponseWriter, r *http.Request) Heard {
	from := senderOf(r.Header)
	if from == nil {
		return Heard{Code: http.StatusUnauthorized, Said: "no forge that is known here has signed this"}
	}
	heard := Heard{Forge: from.Name}
	answer := func(code int, said string) Heard {
		heard.Code, heard.Said = code, said
		return heard
	}
	defer h.reading.Add(-1)
	if h.reading.Add(1) > mostReading {
		return answer(http.StatusServiceUnavailable, "too many requests at a time")
	}
	d, err := read(w, r)
	if _, big := errors.AsType[*http.MaxBytesError](err); big {
		return answer(http.StatusRequestEntityTooLarge, fmt.Sprintf("more than %d bytes", mostWebhook))
	}
	if err != nil {
		return answer(http.StatusBadRequest, "the request cannot be read")
	}
	proven := h.proven(r.Context(), from, d)
	if len(proven) == 0 {
		return answer(http.StatusUnauthorized, "no secret that is known here has signed this")
	}
	heard.Event, err = from.webhook.event(d)
	if err != nil {
		return answer(http.StatusBadRequest, plain(err.Error()))
	}
	if len(heard.Event.Refs) == 0 && !heard.Event.Pull {
		return answer(http.StatusOK, "nothing to do: neither a push nor of a pull request")
	}
	proven = slices.DeleteFunc(proven, func(i int) bool { return !h.Subscribers[i].follows(heard.Event) })
	if len(proven) == 0 {
		return answer(http.StatusNotFound, "404 page not found")
	}
	proven = slices.DeleteFunc(proven, func(i int) bool { return !h.seen.add(strconv.Itoa(i) + " " + from.identity(d)) })
	if len(proven) == 0 {
		return answer(http.StatusOK, "nothing to do: seen before")
	}
	for _, i := range proven {
		if h.Subscribers[i].wake(heard.Event) {
			heard.Woken++
		}
	}
	switch {
	case heard.Woken == 0 && heard.Event.Pull:
		return answer(http.StatusOK, "nothing to do: nobody follows pull requests")
	case heard.Woken == 0:
		return answer(http.StatusOK, "nothing to do: nobody follows this ref")
	}
	return answer(http.StatusAccepted, "looking")
}

// proven are the subscribers whose secret proves a delivery. All are tried, so that the time
// it takes tells nothing.
func (h *Webhooks) proven(ctx context.Context, from *Forge, d delivery) []int {
	var all []int
	for i, s := range h.Subscribers {
		secret, err := s.Secret(ctx)
		if err == nil && secret != "" && from.webhook.proves(d, secret) {
			all = append(all, i)
		}
	}
	return all
}

// A delivery is what a forge sent.
type delivery struct {
	header  http.Header
	body    []byte
	payload []byte // the JSON in it: all of it, or a field of a form
}

func read(w http.ResponseWriter, r *http.Request) (delivery, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostWebhook))
	if err != nil {
		return delivery{}, err
	}
	d := delivery{header: r.Header, body: body, payload: body}
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind == "application/x-www-form-urlencoded" {
		form, err := url.ParseQuery(string(body))
		if err != nil {
			return delivery{}, err
		}
		d.payload = []byte(form.Get("payload"))
	}
	return d, nil
}

// wake wakes those whom an event is for, and says whether there are any.
func (s Subscriber) wake(e Event) bool {
	wants := s.wants(e)
	if wants {
		s.Wake()
	}
	if s.WakePulls != nil {
		s.WakePulls()
	}
	return wants || s.WakePulls != nil
}

// follows says whether an event is of the repository of the subscriber.
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

// wants says whether an event is a push to the ref of the subscriber.
func (s Subscriber) wants(e Event) bool {
	if len(e.Refs) == 0 {
		return false
	}
	ref := s.Ref
	if back := strings.IndexAny(ref, "~^"); back >= 0 {
		ref = ref[:back] // what comes before a branch moves with it
	}
	if ref == "" || ref == "HEAD" || ref == "@" {
		return e.Default == "" || slices.Contains(e.Refs, e.Default)
	}
	return slices.ContainsFunc(e.Refs, func(pushed string) bool {
		return pushed == ref || pushed == "refs/heads/"+ref || pushed == "refs/tags/"+ref || pushed == "refs/"+ref
	})
}

// pathOf is the path of a repository on its forge, as all names of it have it in common.
func pathOf(repository string) string {
	path := repository
	if u, err := url.Parse(repository); err == nil && u.Host != "" {
		path = u.Path
	} else if m := scp.FindStringSubmatch(repository); m != nil {
		path = m[2]
	}
	return strings.TrimSuffix(strings.ToLower(strings.Trim(path, "/")), ".git")
}

// mostSeen is how many deliveries are remembered. One that comes again after that many
// others has somebody look for a commit once more than needed.
const mostSeen = 1024

// A memory is of the deliveries that were heard last.
type memory struct {
	mu    sync.Mutex
	known map[[sha256.Size]byte]bool
	order [][sha256.Size]byte // oldest first
}

// add remembers a delivery, and says whether it is new.
func (m *memory) add(delivery string) bool {
	key := sha256.Sum256([]byte(delivery))
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known[key] {
		return false
	}
	if m.known == nil {
		m.known = map[[sha256.Size]byte]bool{}
	}
	if len(m.order) == mostSeen {
		delete(m.known, m.order[0])
		m.order = slices.Delete(m.order, 0, 1)
	}
	m.known[key] = true
	m.order = append(m.order, key)
	return true
}

// identity tells a delivery from all others. It is made of what the secret proves: an id that
// anybody can change is none. Where the secret is sent along and proves nothing, an id will do:
// who can copy such a request has the secret.
func (f *Forge) identity(d delivery) string {
	id := ""
	if f.webhook.id != nil {
		id = f.webhook.id(d)
	}
	return f.Name + " " + cmp.Or(id, string(d.payload))
}
