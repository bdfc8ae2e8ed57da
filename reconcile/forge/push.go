package forge

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// An Event is what a webhook says: that something was pushed, or that a pull request is not what it
// was. Of any other event it is the zero value.
type Event struct {
	Repositories []string // names of the repository: paths in small letters, as "acme/platform"
	Refs         []string // that were pushed to, in full: "refs/heads/main"; none: it is not of a push
	Default      string   // the ref of the default branch, where that is known
	Pull         bool     // it is of a pull request
}

// A sender is a forge as its webhooks show it.
type sender struct {
	name   string
	header string                               // that none of its requests lacks, and none of those before it in the list has
	proves func(d delivery, secret string) bool // in a time that does not depend on the secret
	id     func(d delivery) string              // what tells a delivery from others; nil or "": what is in it
	event  func(delivery) (Event, error)
}

// senders are in this order because Gitea says of itself that it is GitHub, too.
var senders = []sender{
	{name: "Gitea", header: "X-Gitea-Event", proves: giteaProves, event: giteaEvent}, // and Forgejo
	{name: "GitHub", header: "X-GitHub-Event", proves: hubProves("X-Hub-Signature-256"), event: gitHubEvent},
	{name: "GitLab", header: "X-Gitlab-Event", proves: gitLabProves, id: gitLabID, event: gitLabEvent},
	{name: "Bitbucket", header: "X-Event-Key", proves: hubProves("X-Hub-Signature"), event: bitbucketEvent},
	{name: "Azure DevOps", header: "Authorization", proves: azureProves, event: azureEvent},
}

// senderOf is who a request seems to be from, or nil.
func senderOf(h http.Header) *sender {
	i := slices.IndexFunc(senders, func(s sender) bool { return h.Get(s.header) != "" })
	if i < 0 {
		return nil
	}
	return &senders[i]
}

// signed says whether a signature, in hexadecimal digits, is that of a content.
func signed(content []byte, signature, secret string) bool {
	got, err := hex.DecodeString(signature)
	return err == nil && hmac.Equal(got, sum([]byte(secret), content))
}

func sum(key []byte, parts ...[]byte) []byte {
	mac := hmac.New(sha256.New, key)
	for _, p := range parts {
		mac.Write(p)
	}
	return mac.Sum(nil)
}

// same compares two secrets, of which not even the length gets known.
func same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// hubProves is the scheme that GitHub began and Bitbucket took over. A signature with SHA-1
// proves nothing.
func hubProves(header string) func(delivery, string) bool {
	return func(d delivery, secret string) bool {
		signature, ok := strings.CutPrefix(d.header.Get(header), "sha256=")
		return ok && signed(d.body, signature, secret)
	}
}

// giteaProves is another: where it sends a form, it signs the field.
func giteaProves(d delivery, secret string) bool {
	return signed(d.payload, d.header.Get("X-Gitea-Signature"), secret)
}

// mostSkew is how far the clock of a forge may be from ours, and how long a request may take.
const mostSkew = 5 * time.Minute

// gitLabProves knows the signing tokens of GitLab, which begin with whsec_, and the secret
// tokens of before, which are sent as they are. A secret of one kind never counts as the other.
func gitLabProves(d delivery, secret string) bool {
	encoded, signing := strings.CutPrefix(secret, "whsec_")
	if !signing {
		return same(d.header.Get("X-Gitlab-Token"), secret)
	}
	key, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(key) == 0 {
		return false
	}
	id, sent := d.header.Get("Webhook-Id"), d.header.Get("Webhook-Timestamp")
	at, err := strconv.ParseInt(sent, 10, 64)
	if err != nil || id == "" || time.Since(time.Unix(at, 0)).Abs() > mostSkew {
		return false
	}
	want := sum(key, []byte(id+"."+sent+"."), d.body)
	proven := false
	for signature := range strings.FieldsSeq(d.header.Get("Webhook-Signature")) {
		signature, ok := strings.CutPrefix(signature, "v1,")
		got, err := base64.StdEncoding.DecodeString(signature)
		proven = proven || ok && err == nil && hmac.Equal(got, want)
	}
	return proven
}

// gitLabID is one that its signature covers, where there is one. The content would not do:
// that of two pushes can be the same, when a branch goes back and forth.
func gitLabID(d delivery) string {
	if id := d.header.Get("Webhook-Id"); id != "" {
		return id
	}
	return d.header.Get("Idempotency-Key")
}

// azureProves wants the secret as a password, with any user name: Azure DevOps signs nothing.
func azureProves(d delivery, secret string) bool {
	_, password, ok := (&http.Request{Header: d.header}).BasicAuth()
	return same(password, secret) && ok
}

func gitHubEvent(d delivery) (Event, error) { return hubEvent(d, d.header.Get("X-Github-Event")) }

func giteaEvent(d delivery) (Event, error) { return hubEvent(d, d.header.Get("X-Gitea-Event")) }

// hubEvent is an event of GitHub, Gitea or Forgejo. What happens to a pull request is told by an
// action, and that there was any is enough: what it came to is read from the forge.
func hubEvent(d delivery, event string) (Event, error) {
	if event != "push" && event != "pull_request" {
		return Event{}, nil
	}
	var said struct {
		Ref        string
		Repository struct {
			FullName      string `json:"full_name"`
			DefaultBranch string `json:"default_branch"`
		}
	}
	if err := decode(d, &said); err != nil {
		return Event{}, err
	}
	if event == "pull_request" {
		return pullOf(said.Repository.FullName)
	}
	return pushOf([]string{said.Repository.FullName}, branch(said.Repository.DefaultBranch), said.Ref)
}

func gitLabEvent(d delivery) (Event, error) {
	var said struct {
		Kind    string `json:"object_kind"`
		Ref     string
		Project struct { // of a merge request the one that it is to be merged into
			Path          string `json:"path_with_namespace"`
			DefaultBranch string `json:"default_branch"`
		}
	}
	if err := decode(d, &said); err != nil {
		return Event{}, err
	}
	switch said.Kind {
	case "push", "tag_push":
		return pushOf([]string{said.Project.Path}, branch(said.Project.DefaultBranch), said.Ref)
	case "merge_request":
		return pullOf(said.Project.Path)
	}
	return Event{}, nil
}

// bitbucketEvent is one of Cloud, or of Data Center, which has other events.
func bitbucketEvent(d delivery) (Event, error) {
	switch d.header.Get("X-Event-Key") {
	case "repo:push":
		return bitbucketCloudPush(d)
	case "repo:refs_changed":
		return bitbucketDataCenterPush(d)
	case "pullrequest:created", "pullrequest:updated", "pullrequest:fulfilled", "pullrequest:rejected":
		return bitbucketCloudPull(d)
	case "pr:opened", "pr:from_ref_updated", "pr:modified", "pr:merged", "pr:declined", "pr:deleted":
		return bitbucketDataCenterPull(d)
	}
	return Event{}, nil
}

func bitbucketCloudPull(d delivery) (Event, error) {
	var said struct {
		Repository struct {
			FullName string `json:"full_name"`
		}
	}
	if err := decode(d, &said); err != nil {
		return Event{}, err
	}
	return pullOf(said.Repository.FullName)
}

func bitbucketDataCenterPull(d delivery) (Event, error) {
	var said struct {
		PullRequest struct {
			ToRef struct{ Repository centreRepository }
		}
	}
	if err := decode(d, &said); err != nil {
		return Event{}, err
	}
	return pullOf(said.PullRequest.ToRef.Repository.path())
}

// A centreRepository is a repository as Data Center tells it.
type centreRepository struct {
	Slug    string
	Project struct{ Key string }
}

func (r centreRepository) path() string { return r.Project.Key + "/" + r.Slug }

func bitbucketCloudPush(d delivery) (Event, error) {
	type ref struct{ Type, Name string }
	var said struct {
		Push       struct{ Changes []struct{ Old, New ref } }
		Repository struct {
			FullName string `json:"full_name"`
		}
	}
	if err := decode(d, &said); err != nil {
		return Event{}, err
	}
	var refs []string
	for _, c := range said.Push.Changes {
		moved := c.New
		if moved.Name == "" {
			moved = c.Old // it was deleted
		}
		if moved.Type == "tag" {
			refs = append(refs, "refs/tags/"+moved.Name)
		} else {
			refs = append(refs, "refs/heads/"+moved.Name)
		}
	}
	return pushOf([]string{said.Repository.FullName}, "", refs...)
}

func bitbucketDataCenterPush(d delivery) (Event, error) {
	var said struct {
		Changes    []struct{ Ref struct{ ID string } }
		Repository centreRepository
	}
	if err := decode(d, &said); err != nil {
		return Event{}, err
	}
	var refs []string
	for _, c := range said.Changes {
		refs = append(refs, c.Ref.ID)
	}
	return pushOf([]string{said.Repository.path()}, "", refs...)
}

func azureEvent(d delivery) (Event, error) {
	var said struct {
		EventType string
		Resource  struct {
			RefUpdates []struct{ Name string }
			Repository struct {
				Name, RemoteURL, DefaultBranch string
				Project                        struct{ Name string }
			}
		}
	}
	if err := decode(d, &said); err != nil {
		return Event{}, err
	}
	pull := slices.Contains([]string{"git.pullrequest.created", "git.pullrequest.updated", "git.pullrequest.merged"}, said.EventType)
	if said.EventType != "git.push" && !pull {
		return Event{}, nil
	}
	of := said.Resource.Repository
	// An organisation has two hosts, and on one of them its name is no part of the path; a
	// repository that is called as its project may leave that out.
	names := []string{of.Project.Name + "/_git/" + of.Name}
	if of.RemoteURL != "" {
		names = append(names, of.RemoteURL)
	}
	if pull {
		return pullOf(names...)
	}
	var refs []string
	for _, u := range said.Resource.RefUpdates {
		refs = append(refs, u.Name)
	}
	return pushOf(names, of.DefaultBranch, refs...)
}

func decode(d delivery, into any) error {
	if err := json.Unmarshal(d.payload, into); err != nil {
		return fmt.Errorf("cannot read the event: %w", err)
	}
	return nil
}

func branch(name string) string {
	if name == "" {
		return ""
	}
	return "refs/heads/" + name
}

// pushOf is a push, unless what it is made of cannot be the names of one repository and of refs.
func pushOf(repositories []string, main string, refs ...string) (Event, error) {
	e, err := eventOf(repositories)
	if err != nil {
		return Event{}, err
	}
	for _, ref := range refs {
		if !strings.HasPrefix(ref, "refs/") || strings.HasSuffix(ref, "/") || strings.ContainsFunc(ref, unseen) || strings.ContainsFunc(ref, unicode.IsSpace) {
			return Event{}, errors.New("the event names a ref that is none")
		}
	}
	e.Default, e.Refs = main, refs
	return e, nil
}

// pullOf is an event of a pull request. Which one it is, and whose, the forge is asked.
func pullOf(repositories ...string) (Event, error) {
	e, err := eventOf(repositories)
	e.Pull = err == nil
	return e, err
}

func eventOf(repositories []string) (Event, error) {
	var e Event
	for _, r := range repositories {
		path := pathOf(r)
		if owner, name, _ := strings.Cut(path, "/"); owner == "" || name == "" || strings.HasSuffix(name, "/") || strings.ContainsFunc(path, unseen) {
			return Event{}, errors.New("the event does not say of which repository it is")
		}
		e.Repositories = append(e.Repositories, path)
	}
	return e, nil
}

// unseen is what nobody sees, and no name has.
func unseen(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }
