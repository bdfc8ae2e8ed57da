package forge

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// KindBitbucketDataCenter is Bitbucket Data Center, formerly Server.
const KindBitbucketDataCenter Kind = "bitbucket-data-center"

var dataCenterForge = Forge{
	Kind: KindBitbucketDataCenter,
	Name: "Bitbucket Data Center",
	addresses: addresses{
		suggests: func(path []string) bool { n := len(path); return n > 2 && path[n-3] == "scm" },
		apiPath:  "/rest/",
		split:    splitDataCenter,
		segment:  regexp.MustCompile(`^~?[A-Za-z0-9._-]+$`), // the project of a user starts with ~
		page:     func(base string, r Repository) string { return base + "projects/" + r.Owner + "/repos/" + r.Name },
	},
	webhook:       webhook{header: "X-Event-Key", is: isDataCenterEvent, proves: hubProves("X-Hub-Signature"), event: dataCenterEvent},
	dialect:       buildDialect,
	listed:        true, // only its administrators can read who has write access
	authorization: userOrBearer,
	open: func(at Repository, api string, over *http.Client) (client, error) {
		return dataCenter{rest{name: "Bitbucket Data Center", at: at, api: api, client: over}}, nil
	},
	mergeRef: "refs/pull-requests/%d/merge",
	filePath: func(commit, path string, line int) string {
		return "/browse/" + path + "?at=" + commit + numbered("#", line)
	},
	commentPath: "/pull-requests/%[1]d/overview?commentId=%[2]d",
}

// splitDataCenter splits the paths scm/PROJECT/NAME and projects/PROJECT/repos/NAME.
func splitDataCenter(_ *url.URL, path []string) (below, owner []string) {
	n := len(path)
	switch {
	case n > 2 && path[n-3] == "scm":
		return path[:n-3], path[n-2 : n-1]
	case n > 3 && path[n-4] == "projects" && path[n-2] == "repos":
		return path[:n-4], path[n-3 : n-2]
	}
	return path[:n-2], path[n-2 : n-1]
}

// dataCenter is a client of Bitbucket Data Center.
type dataCenter struct{ rest }

var (
	dataCenterStatus  = answer{right: "the permission “Repository read”"}
	dataCenterPull    = answer{doing: "read pull requests", right: "the permission “Repository read”"}
	dataCenterComment = answer{doing: "comment on pull requests", right: "the permission “Repository read”"}
)

func (d dataCenter) path(below string) string {
	return "api/latest/projects/" + d.at.Owner + "/repos/" + d.at.Name + "/" + below
}

// centrePages reads the pages of a listing, and reports whether it reached the last one.
func centrePages[T any](ctx context.Context, d dataCenter, a answer, path string) (all []T, whole bool, err error) {
	for start, pages := 0, 0; pages < maxPages; pages++ {
		var got struct {
			Values        []T
			IsLastPage    *bool
			NextPageStart *int
		}
		if _, err := d.do(ctx, a, http.MethodGet, fmt.Sprintf("%s?limit=100&start=%d", path, start), nil, &got); err != nil {
			return nil, false, err
		}
		all = append(all, got.Values...)
		if got.NextPageStart == nil || *got.NextPageStart <= start || got.IsLastPage != nil && *got.IsLastPage {
			return all, true, nil
		}
		start = *got.NextPageStart
	}
	return all, false, nil
}

func (d dataCenter) list(ctx context.Context, commit string) (map[string]Status, error) {
	builds, _, err := centrePages[build](ctx, d, dataCenterStatus, "build-status/latest/commits/"+commit)
	return currentOf(builds, commit), err
}

func (d dataCenter) keep(s Status) Status { return keepBuild(s, d.at.page()+"/commits/"+s.Commit) }

func (d dataCenter) create(ctx context.Context, s Status) error {
	_, err := d.do(ctx, dataCenterStatus, http.MethodPost, d.path("commits/"+s.Commit+"/builds"), buildOf(s), nil)
	return err
}

// A centreRequest is a pull request as the Data Center returns it.
type centreRequest struct {
	ID      int
	Author  struct{ User struct{ ID int64 } }
	FromRef struct {
		LatestCommit string
		Repository   struct{ ID int64 }
	}
	ToRef struct {
		ID         string
		Repository struct{ ID int64 }
	}
}

func (is centreRequest) pull() Pull {
	from, into := is.FromRef.Repository.ID, is.ToRef.Repository.ID
	return Pull{Number: is.ID, Head: is.FromRef.LatestCommit, Target: strings.TrimPrefix(is.ToRef.ID, "refs/heads/"), Fork: from == 0 || from != into, Author: authorOf(is.Author.User.ID)}
}

func (d dataCenter) open(ctx context.Context) ([]Pull, error) {
	got, _, err := centrePages[centreRequest](ctx, d, dataCenterPull, d.path("pull-requests")) // open pull requests, newest first
	return pullsOf(got, centreRequest.pull), err
}

func (d dataCenter) pull(ctx context.Context, number int) (Pull, error) {
	var is centreRequest
	if _, err := d.do(ctx, dataCenterPull, http.MethodGet, d.path(fmt.Sprintf("pull-requests/%d", number)), nil, &is); err != nil {
		return Pull{}, err
	}
	return is.pull(), nil
}

// self reads the user from a response header, which every authenticated answer has.
func (d dataCenter) self(ctx context.Context) (string, error) {
	got, err := d.do(ctx, dataCenterPull, http.MethodGet, strings.TrimSuffix(d.path(""), "/"), nil, nil)
	if err != nil {
		return "", err
	}
	name := got.header.Get("X-Ausername")
	if unescaped, err := url.QueryUnescape(name); err == nil {
		name = unescaped
	}
	return name, nil
}

// A centreUser is a user as the Data Center returns it. For a commit whose address belongs to no user, it only holds
// the name and address from Git.
type centreUser struct {
	ID           int64
	Name         string
	EmailAddress string
	Slug         string
	Type         string
}

// user returns the user, without a name if the forge does not know the user.
func (u *centreUser) user() user {
	if u.Slug == "" {
		return user{}
	}
	return user{id: u.ID, name: u.Name}
}

// An activity is an event on a pull request.
type activity struct {
	Action      string
	CreatedDate int64
	Comment     *struct {
		ID                       int64
		Version                  int
		Text                     string
		Author                   centreUser
		CreatedDate, UpdatedDate int64
	}
	FromHash, PreviousFromHash string // set for a push
	User                       centreUser
}

// activities returns the events on a pull request, newest first.
func (d dataCenter) activities(ctx context.Context, number int) (all []activity, whole bool, err error) {
	return centrePages[activity](ctx, d, dataCenterComment, d.path(fmt.Sprintf("pull-requests/%d/activities", number)))
}

// comments reads the activities of a pull request, because there is no separate list of comments.
func (d dataCenter) comments(ctx context.Context, number int, _ time.Time) ([]comment, error) {
	got, whole, err := d.activities(ctx, number)
	var all []comment
	for _, a := range got {
		if c := a.Comment; a.Action == "COMMENTED" && c != nil {
			all = append(all, comment{
				id: c.ID, version: c.Version, author: c.Author.Name, of: c.Author.ID, body: c.Text, bot: c.Author.Type != "" && c.Author.Type != "NORMAL",
				created: milliseconds(c.CreatedDate), updated: milliseconds(c.UpdatedDate),
			})
		}
	}
	if err == nil && !whole {
		err = errTooManyComments
	}
	return all, err
}

// milliseconds returns the time for a Data Center timestamp.
func milliseconds(t int64) time.Time {
	if t == 0 {
		return time.Time{}
	}
	return time.UnixMilli(t)
}

func (d dataCenter) authors(ctx context.Context, number int) (authors, error) {
	var is struct{ Author struct{ User centreUser } }
	path := d.path(fmt.Sprintf("pull-requests/%d", number))
	if _, err := d.do(ctx, dataCenterPull, http.MethodGet, path, nil, &is); err != nil {
		return authors{}, err
	}
	if is.Author.User.Name == "" {
		return authors{}, fmt.Errorf("%s: pull request %d has no author", d.name, number)
	}
	got, whole, err := centrePages[struct {
		ID, Message       string
		Author, Committer centreUser
	}](ctx, d, dataCenterPull, path+"/commits")
	switch {
	case err != nil:
		return authors{}, err
	case !whole:
		return authors{}, errTooManyCommits
	}
	all := authors{known: []user{{id: is.Author.User.ID, name: is.Author.User.Name}}}
	done, whole, err := d.activities(ctx, number)
	switch {
	case err != nil:
		return authors{}, err
	case !whole:
		return authors{}, errTooManyComments
	}
	for _, a := range done { // anyone who pushes can write any name into a commit
		if a.Action == "RESCOPED" && a.FromHash != a.PreviousFromHash {
			all.known = append(all.known, user{id: a.User.ID, name: a.User.Name})
		}
	}
	for _, c := range got {
		all.add(c.ID, c.Author.user(), c.Author.EmailAddress)
		all.add(c.ID, c.Committer.user(), c.Committer.EmailAddress)
		all.coauthors(c.ID, c.Message)
	}
	return all, nil
}

// verdicts returns the builds of a commit without times: the Data Center keeps only the time of the last change, and
// an approval changes a build.
func (d dataCenter) verdicts(ctx context.Context, commit string) ([]pastStatus, error) {
	current, err := d.list(ctx, commit)
	var all []pastStatus
	for _, s := range current {
		all = append(all, pastStatus{s.Context, s.State, time.Time{}, ""})
	}
	return all, err
}

// pushed reads the activities of a pull request. Every push and every change of the target is one.
func (d dataCenter) pushed(ctx context.Context, number int, head string) (time.Time, error) {
	got, whole, err := d.activities(ctx, number)
	if err != nil {
		return time.Time{}, err
	}
	for _, a := range got {
		switch {
		case a.Action != "RESCOPED":
		case a.FromHash != head:
			return time.Time{}, nil
		case a.PreviousFromHash != head:
			return milliseconds(a.CreatedDate), nil
		}
	}
	if !whole {
		return time.Time{}, errTooManyComments
	}
	var is struct { // the pull request never had another head
		CreatedDate int64
		FromRef     struct{ LatestCommit string }
	}
	_, err = d.do(ctx, dataCenterPull, http.MethodGet, d.path(fmt.Sprintf("pull-requests/%d", number)), nil, &is)
	if err != nil || is.FromRef.LatestCommit != head {
		return time.Time{}, err
	}
	return milliseconds(is.CreatedDate), nil
}

func (d dataCenter) history(ctx context.Context, commit string, since time.Time) ([]string, error) {
	var got struct {
		Values []struct {
			ID                 string
			CommitterTimestamp int64
		}
	}
	if _, err := d.do(ctx, dataCenterPull, http.MethodGet, d.path(fmt.Sprintf("commits?until=%s&limit=%d", commit, maxHistory)), nil, &got); err != nil {
		return nil, err
	}
	var all []string
	for _, c := range got.Values {
		if !milliseconds(c.CommitterTimestamp).Before(since) {
			all = append(all, c.ID)
		}
	}
	return all, nil
}

// merged searches the pull requests that were merged last. The Data Center can only list the pull requests that
// contain a commit, not those whose merge made it.
func (d dataCenter) merged(ctx context.Context, commit string) ([]Pull, error) {
	var got struct {
		Values []struct {
			centreRequest

			Properties struct{ MergeCommit struct{ ID string } }
		}
	}
	if _, err := d.do(ctx, dataCenterPull, http.MethodGet, d.path("pull-requests?state=MERGED&order=NEWEST&limit=100"), nil, &got); err != nil {
		return nil, err
	}
	var all []Pull
	for _, is := range got.Values {
		if is.Properties.MergeCommit.ID == commit || is.FromRef.LatestCommit == commit { // FromRef after a fast-forward
			all = append(all, is.pull())
		}
	}
	return all, nil
}

func (d dataCenter) comment(ctx context.Context, number int, body string) error {
	_, err := d.do(ctx, dataCenterComment, http.MethodPost, d.path(fmt.Sprintf("pull-requests/%d/comments", number)), map[string]any{"text": body}, nil)
	return err
}

func (d dataCenter) edit(ctx context.Context, number int, c comment, body string) error {
	path := d.path(fmt.Sprintf("pull-requests/%d/comments/%d", number, c.id))
	return edited(d.do(ctx, dataCenterComment, http.MethodPut, path, map[string]any{"text": body, "version": c.version}, nil))
}

func (d dataCenter) remove(ctx context.Context, number int, c comment) error {
	_, err := d.do(ctx, dataCenterComment, http.MethodDelete, d.path(fmt.Sprintf("pull-requests/%d/comments/%d?version=%d", number, c.id, c.version)), nil, nil)
	return err
}

// isDataCenterEvent reports whether an event key belongs to the Data Center. Bitbucket Cloud has different ones.
func isDataCenterEvent(key string) bool {
	return key == "repo:refs_changed" || strings.HasPrefix(key, "pr:") || strings.HasPrefix(key, "diagnostics:")
}

func dataCenterEvent(d delivery) (Event, error) {
	switch d.header.Get("X-Event-Key") {
	case "repo:refs_changed":
		return dataCenterPush(d)
	case "pr:opened", "pr:from_ref_updated", "pr:modified", "pr:merged", "pr:declined", "pr:deleted",
		"pr:comment:added", "pr:comment:edited", "pr:comment:deleted":
		return dataCenterPullEvent(d)
	}
	return Event{}, nil
}

func dataCenterPullEvent(d delivery) (Event, error) {
	var event struct {
		PullRequest struct {
			ToRef struct{ Repository centreRepository }
		}
	}
	if err := decode(d, &event); err != nil {
		return Event{}, err
	}
	return pullOf(event.PullRequest.ToRef.Repository.path())
}

// A centreRepository is a repository as the Data Center returns it.
type centreRepository struct {
	Slug    string
	Project struct{ Key string }
}

func (r centreRepository) path() string { return r.Project.Key + "/" + r.Slug }

func dataCenterPush(d delivery) (Event, error) {
	var event struct {
		Changes    []struct{ Ref struct{ ID string } }
		Repository centreRepository
	}
	if err := decode(d, &event); err != nil {
		return Event{}, err
	}
	var refs []string
	for _, c := range event.Changes {
		refs = append(refs, c.Ref.ID)
	}
	return pushOf([]string{event.Repository.path()}, "", refs...)
}
