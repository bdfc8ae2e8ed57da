package forge

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"headgate.dev/headgate/reconcile/report"
)

// KindBitbucket is Bitbucket Cloud.
const KindBitbucket Kind = "bitbucket"

var bitbucketForge = Forge{ //nolint:gosec // the name of a variable, and no token
	Kind: KindBitbucket,
	Name: "Bitbucket",

	TokenHelp: `The token of a user of Bitbucket is "email:token".`,
	addresses: addresses{
		public:    func(host string) bool { return host == "bitbucket.org" },
		aliases:   map[string]alias{"altssh.bitbucket.org": {host: "bitbucket.org"}},
		apiPath:   "/2.0/",
		publicAPI: "/2.0/",
	},
	pipeline:      pipeline{name: "Bitbucket Cloud", token: "BITBUCKET_TOKEN", read: bitbucketPipelines},
	webhook:       webhook{header: "X-Event-Key", proves: hubProves("X-Hub-Signature"), event: bitbucketEvent},
	dialect:       buildDialect,
	listed:        true, // only its administrators can read who has write access
	authorization: userOrBearer,
	open: func(at Repository, api string, over *http.Client) (client, error) {
		return bitbucket{rest{name: "Bitbucket", at: at, api: api, client: over}}, nil
	},
	filePath: func(commit, path string, line int) string {
		return "/src/" + commit + "/" + path + numbered("#lines-", line)
	},
	commentPath: "/pull-requests/%[1]d#comment-%[2]d",
}

// buildDialect is the Markdown of comments in Bitbucket Cloud and Data Center.
var buildDialect = report.Dialect{MaxBytes: 32_768, NoHTML: true}

// userOrBearer returns the Authorization header for a token. A user's token has the form "email:API token" or "name:password".
func userOrBearer(token string) string {
	if user, password, ok := strings.Cut(token, ":"); ok {
		return basic(user, password)
	}
	return "Bearer " + token
}

func bitbucketPipelines(env func(string) string) (Workflow, bool) {
	return Workflow{
		Server: "https://bitbucket.org", Name: env("BITBUCKET_REPO_FULL_NAME"), Pull: pullNumber(env("BITBUCKET_PR_ID")),
		Base: remoteBranch(env("BITBUCKET_PR_DESTINATION_BRANCH")), Target: env("BITBUCKET_PR_DESTINATION_BRANCH"), Head: env("BITBUCKET_COMMIT"),
		Run: "https://bitbucket.org/" + env("BITBUCKET_REPO_FULL_NAME") + "/pipelines/results/" + env("BITBUCKET_BUILD_NUMBER"),
	}, env("BITBUCKET_BUILD_NUMBER") != ""
}

// A build is a status in the form of Bitbucket Cloud and Data Center.
type build struct {
	Key         string `json:"key"`
	Name        string `json:"name"`
	State       string `json:"state"`
	Description string `json:"description"`
	URL         string `json:"url"`
}

// buildKey returns the build key for a context: at most 40 characters.
func buildKey(of string) string {
	sum := sha256.Sum256([]byte(of))
	return hex.EncodeToString(sum[:20])
}

func buildOf(s Status) build {
	state := "FAILED"
	switch s.State {
	case report.Pending:
		state = "INPROGRESS"
	case report.Success:
		state = "SUCCESSFUL"
	}
	return build{Key: buildKey(s.Context), Name: s.Context, State: state, Description: s.Description, URL: s.TargetURL}
}

// status returns the status in a build, and reports whether Headgate posted it.
func (b build) status(commit string) (Status, bool) {
	s := Status{Commit: commit, Context: b.Name, Description: b.Description, TargetURL: b.URL}
	switch b.State {
	case "INPROGRESS":
		s.State = report.Pending
	case "SUCCESSFUL":
		s.State = report.Success
	case "FAILED":
		s.State = report.Failure
	}
	return s, b.Key == buildKey(b.Name)
}

// keepBuild returns a status within the limits of a build. A build must have a URL.
func keepBuild(s Status, commit string) Status {
	s.Description, s.Into, s.Pull = s.shortened(255), "", 0
	if s.State == report.Error {
		s.State = report.Failure
	}
	s.TargetURL = cmp.Or(s.TargetURL, commit)
	return s
}

// bitbucket is a client of Bitbucket Cloud.
type bitbucket struct{ rest }

var (
	bitbucketStatus  = answer{right: "the scope repository (an access token: Repositories, write)"}
	bitbucketPull    = answer{doing: "read pull requests", right: "the scope pullrequest (an access token: Pull requests, read)"}
	bitbucketComment = answer{doing: "comment on pull requests", right: "the scope pullrequest (an access token: Pull requests, write)"}
)

func (b bitbucket) path(below string) string { return "repositories/" + b.at.String() + "/" + below }

// A page is a page of a listing. Headgate counts the pages itself and does not follow the server's URL of the next page.
type page[T any] struct {
	Values []T    `json:"values"`
	Next   string `json:"next"`
}

// allPages reads the pages of a listing, and reports whether it reached the last one. A page has at most 50 pull requests.
func allPages[T any](ctx context.Context, b bitbucket, a answer, path string) (all []T, whole bool, err error) {
	for n := 1; n <= maxPages; n++ {
		var got page[T]
		if _, err := b.do(ctx, a, http.MethodGet, fmt.Sprintf("%s?pagelen=50&page=%d", b.path(path), n), nil, &got); err != nil {
			return nil, false, err
		}
		all = append(all, got.Values...)
		if got.Next == "" {
			return all, true, nil
		}
	}
	return all, false, nil
}

// currentOf returns the statuses that Headgate posted, by context. Each key has only one build.
func currentOf(builds []build, commit string) map[string]Status {
	current := map[string]Status{}
	for _, is := range builds {
		if s, ours := is.status(commit); ours {
			current[s.Context] = s
		}
	}
	return current
}

func (b bitbucket) list(ctx context.Context, commit string) (map[string]Status, error) {
	builds, _, err := allPages[build](ctx, b, bitbucketStatus, "commit/"+commit+"/statuses")
	return currentOf(builds, commit), err
}

func (b bitbucket) keep(s Status) Status { return keepBuild(s, b.at.page()+"/commits/"+s.Commit) }

func (b bitbucket) create(ctx context.Context, s Status) error {
	_, err := b.do(ctx, bitbucketStatus, http.MethodPost, b.path("commit/"+s.Commit+"/statuses/build"), buildOf(s), nil)
	return err
}

// A cloudRequest is a pull request as Bitbucket Cloud returns it.
type cloudRequest struct {
	ID     int
	Author struct{ UUID string }
	Source struct {
		Commit     struct{ Hash string }
		Repository struct {
			FullName string `json:"full_name"`
		}
	}
	Destination struct {
		Branch     struct{ Name string }
		Repository struct {
			FullName string `json:"full_name"`
		}
	}
}

func (is cloudRequest) pull() Pull {
	from, into := is.Source.Repository.FullName, is.Destination.Repository.FullName
	return Pull{Number: is.ID, Head: is.Source.Commit.Hash, Target: is.Destination.Branch.Name, Fork: from == "" || from != into, Author: is.Author.UUID}
}

func (b bitbucket) open(ctx context.Context) ([]Pull, error) {
	got, _, err := allPages[cloudRequest](ctx, b, bitbucketPull, "pullrequests") // open pull requests, newest first
	return pullsOf(got, cloudRequest.pull), err
}

// pull also reads the commits, because Bitbucket returns only twelve digits of the head of a pull request.
func (b bitbucket) pull(ctx context.Context, number int) (Pull, error) {
	var is cloudRequest
	path := b.path(fmt.Sprintf("pullrequests/%d", number))
	if _, err := b.do(ctx, bitbucketPull, http.MethodGet, path, nil, &is); err != nil {
		return Pull{}, err
	}
	pull := is.pull()
	head := pull.Head
	if head != "" && !isCommit(head) {
		var commits page[struct{ Hash string }]
		if _, err := b.do(ctx, bitbucketPull, http.MethodGet, path+"/commits?pagelen=100", nil, &commits); err != nil {
			return Pull{}, err
		}
		for _, c := range commits.Values {
			if strings.HasPrefix(c.Hash, head) {
				pull.Head = c.Hash
				break
			}
		}
	}
	return pull, nil
}

// self returns "" for the token of a repository or workspace, which belongs to no user.
func (b bitbucket) self(ctx context.Context) (string, error) {
	var user struct{ UUID string }
	got, err := b.do(ctx, answer{doing: "read who it is", right: "the scope account"}, http.MethodGet, "user", nil, &user)
	if refusedWith(got, err, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound) {
		return "", nil
	}
	return user.UUID, err
}

// A cloudUser is a user as Bitbucket Cloud returns it. Users choose their names and may change them; only the UUID
// and the account ID are permanent.
type cloudUser struct {
	Type      string
	UUID      string
	AccountID string `json:"account_id"`
	Nickname  string
	Name      string `json:"display_name"`
}

func (u cloudUser) comment() comment {
	c := comment{author: u.UUID, names: []string{strings.Trim(u.UUID, "{}"), u.AccountID}, bot: u.Type != "" && u.Type != "user"}
	if name := cmp.Or(u.Nickname, u.Name); name != "" {
		c.shown = name + " (" + cmp.Or(u.AccountID, u.UUID) + ")"
	}
	return c
}

func (b bitbucket) comments(ctx context.Context, number int, _ time.Time) ([]comment, error) {
	got, whole, err := allPages[struct {
		ID      int64
		Deleted bool
		Content struct{ Raw string }
		User    cloudUser
		Created time.Time `json:"created_on"`
		Updated time.Time `json:"updated_on"`
	}](ctx, b, bitbucketComment, fmt.Sprintf("pullrequests/%d/comments", number))
	var all []comment
	for _, c := range got {
		if !c.Deleted {
			is := c.User.comment()
			is.id, is.body, is.created, is.updated = c.ID, c.Content.Raw, c.Created, c.Updated
			all = append(all, is)
		}
	}
	if err == nil && !whole {
		err = errTooManyComments
	}
	return all, err
}

// A cloudSignature is the author or committer of a commit, with the user who owns the address.
type cloudSignature struct {
	Raw  string
	User *cloudUser
}

var rawAddress = regexp.MustCompile(`<([^<>]*)>\s*$`)

func (s cloudSignature) addTo(all *authors, commit string) {
	var who user
	email := ""
	if s.User != nil {
		who.name = s.User.UUID
	}
	if m := rawAddress.FindStringSubmatch(s.Raw); m != nil {
		email = m[1]
	}
	all.add(commit, who, email)
}

func (b bitbucket) authors(ctx context.Context, number int) (authors, error) {
	var is struct{ Author cloudUser }
	path := fmt.Sprintf("pullrequests/%d", number)
	if _, err := b.do(ctx, bitbucketPull, http.MethodGet, b.path(path), nil, &is); err != nil {
		return authors{}, err
	}
	if is.Author.UUID == "" {
		return authors{}, fmt.Errorf("%s: pull request %d has no author", b.name, number)
	}
	got, whole, err := allPages[struct {
		Hash, Message string
		Author        cloudSignature
		Committer     *cloudSignature
	}](ctx, b, bitbucketPull, path+"/commits")
	switch {
	case err != nil:
		return authors{}, err
	case !whole:
		return authors{}, errTooManyCommits
	}
	all := authors{known: []user{{name: is.Author.UUID}}}
	done, err := b.updates(ctx, number)
	if err != nil {
		return authors{}, err
	}
	for i, u := range done { // anyone who pushes can write any name into a commit
		if i+1 < len(done) && u.Source.Commit.Hash != done[i+1].Source.Commit.Hash {
			all.known = append(all.known, user{name: u.Author.UUID})
		}
	}
	for _, c := range got {
		c.Author.addTo(&all, c.Hash)
		if c.Committer != nil {
			c.Committer.addTo(&all, c.Hash)
		}
		all.coauthors(c.Hash, c.Message)
	}
	return all, nil
}

// verdicts returns the builds of a commit. Posting a status again changes the build. Only its creation is certain to
// precede any approval, so the time is that of the pending status.
func (b bitbucket) verdicts(ctx context.Context, commit string) ([]pastStatus, error) {
	got, _, err := allPages[struct {
		build

		Created time.Time `json:"created_on"`
	}](ctx, b, bitbucketStatus, "commit/"+commit+"/statuses")
	var all []pastStatus
	for _, is := range got {
		if s, ours := is.status(commit); ours {
			all = append(all, pastStatus{s.Context, s.State, is.Created, ""})
		}
	}
	return all, err
}

// A cloudUpdate is a push to a pull request or another change of it.
type cloudUpdate struct {
	Date   time.Time
	Author cloudUser
	Source struct{ Commit struct{ Hash string } }
}

// updates reads the activity of a pull request, newest first. The listing has no page numbers, so updates takes the
// query of the next page from the answer, but nothing else of its URL.
func (b bitbucket) updates(ctx context.Context, number int) ([]cloudUpdate, error) {
	var all []cloudUpdate
	query := "pagelen=50"
	for range maxPages {
		var got page[struct{ Update *cloudUpdate }]
		if _, err := b.do(ctx, bitbucketPull, http.MethodGet, b.path(fmt.Sprintf("pullrequests/%d/activity?%s", number, query)), nil, &got); err != nil {
			return nil, err
		}
		for _, a := range got.Values {
			if a.Update != nil {
				all = append(all, *a.Update)
			}
		}
		if got.Next == "" {
			return all, nil
		}
		next, err := url.Parse(got.Next)
		if err != nil || next.RawQuery == "" || next.RawQuery == query {
			return nil, fmt.Errorf("%s: cannot understand the address of the next page", b.name)
		}
		query = next.RawQuery
	}
	return nil, errTooManyComments
}

func (b bitbucket) pushed(ctx context.Context, number int, head string) (time.Time, error) {
	all, err := b.updates(ctx, number)
	if err != nil {
		return time.Time{}, err
	}
	var at time.Time
	for _, u := range all {
		if len(u.Source.Commit.Hash) < 12 || !strings.HasPrefix(head, u.Source.Commit.Hash) {
			return at, nil
		}
		at = u.Date
	}
	var is struct { // the pull request never had another head
		Created time.Time `json:"created_on"`
	}
	_, err = b.do(ctx, bitbucketPull, http.MethodGet, b.path(fmt.Sprintf("pullrequests/%d", number)), nil, &is)
	return is.Created, err
}

func (b bitbucket) history(ctx context.Context, commit string, since time.Time) ([]string, error) {
	var got page[struct {
		Hash string
		Date time.Time
	}]
	if _, err := b.do(ctx, bitbucketPull, http.MethodGet, b.path(fmt.Sprintf("commits/%s?pagelen=%d", commit, maxHistory)), nil, &got); err != nil {
		return nil, err
	}
	var all []string
	for _, c := range got.Values {
		if !c.Date.Before(since) {
			all = append(all, c.Hash)
		}
	}
	return all, nil
}

// merged searches the pull requests that were merged last. Bitbucket lists the pull requests of a commit only if an
// app is installed.
func (b bitbucket) merged(ctx context.Context, commit string) ([]Pull, error) {
	var got page[struct {
		cloudRequest

		MergeCommit struct{ Hash string } `json:"merge_commit"`
	}]
	if _, err := b.do(ctx, bitbucketPull, http.MethodGet, b.path("pullrequests?state=MERGED&sort=-updated_on&pagelen=50"), nil, &got); err != nil {
		return nil, err
	}
	var all []Pull
	for _, is := range got.Values {
		if !isOf(commit, is.MergeCommit.Hash) && !isOf(commit, is.Source.Commit.Hash) { // Source after a fast-forward
			continue
		}
		whole, err := b.pull(ctx, is.ID)
		if err != nil {
			return nil, err
		}
		all = append(all, whole)
	}
	return all, nil
}

// isOf reports whether a possibly shortened hash is the hash of a commit.
func isOf(commit, hash string) bool { return len(hash) >= 12 && strings.HasPrefix(commit, hash) }

func (b bitbucket) comment(ctx context.Context, number int, body string) error {
	_, err := b.say(ctx, http.MethodPost, fmt.Sprintf("pullrequests/%d/comments", number), body)
	return err
}

func (b bitbucket) edit(ctx context.Context, number int, c comment, body string) error {
	return edited(b.say(ctx, http.MethodPut, fmt.Sprintf("pullrequests/%d/comments/%d", number, c.id), body))
}

func (b bitbucket) remove(ctx context.Context, number int, c comment) error {
	_, err := b.do(ctx, bitbucketComment, http.MethodDelete, b.path(fmt.Sprintf("pullrequests/%d/comments/%d", number, c.id)), nil, nil)
	return err
}

func (b bitbucket) say(ctx context.Context, method, path, body string) (reply, error) {
	return b.do(ctx, bitbucketComment, method, b.path(path), map[string]any{"content": map[string]string{"raw": body}}, nil)
}

// edited returns the error of an edit. Only the author may edit a comment.
func edited(got reply, err error) error {
	if refusedWith(got, err, http.StatusForbidden) {
		return foreignError{err}
	}
	return err
}

func bitbucketEvent(d delivery) (Event, error) {
	switch d.header.Get("X-Event-Key") {
	case "repo:push":
		return bitbucketPush(d)
	case "pullrequest:created", "pullrequest:updated", "pullrequest:fulfilled", "pullrequest:rejected",
		"pullrequest:comment_created", "pullrequest:comment_updated", "pullrequest:comment_deleted":
		return bitbucketPullEvent(d)
	}
	return Event{}, nil
}

func bitbucketPullEvent(d delivery) (Event, error) {
	var event struct {
		Repository struct {
			FullName string `json:"full_name"`
		}
	}
	if err := decode(d, &event); err != nil {
		return Event{}, err
	}
	return pullOf(event.Repository.FullName)
}

func bitbucketPush(d delivery) (Event, error) {
	type ref struct{ Type, Name string }
	var event struct {
		Push       struct{ Changes []struct{ Old, New ref } }
		Repository struct {
			FullName string `json:"full_name"`
		}
	}
	if err := decode(d, &event); err != nil {
		return Event{}, err
	}
	var refs []string
	for _, c := range event.Push.Changes {
		moved := c.New
		if moved.Name == "" {
			moved = c.Old // a deleted branch or tag has no New
		}
		if moved.Type == "tag" {
			refs = append(refs, "refs/tags/"+moved.Name)
		} else {
			refs = append(refs, "refs/heads/"+moved.Name)
		}
	}
	return pushOf([]string{event.Repository.FullName}, "", refs...)
}
