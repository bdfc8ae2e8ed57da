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
		segment:  regexp.MustCompile(`^~?[A-Za-z0-9._-]+$`), // with ~ it is the project of a user
		page:     func(base string, r Repository) string { return base + "projects/" + r.Owner + "/repos/" + r.Name },
	},
	webhook:       webhook{header: "X-Event-Key", is: isDataCenterEvent, proves: hubProves("X-Hub-Signature"), event: dataCenterEvent},
	dialect:       buildDialect,
	authorization: userOrBearer,
	open: func(at Repository, api string, over *http.Client) (client, error) {
		return dataCenter{rest{name: "Bitbucket Data Center", at: at, api: api, client: over}}, nil
	},
	mergeRef: "refs/pull-requests/%d/merge",
}

// splitDataCenter knows the paths scm/PROJECT/NAME and projects/PROJECT/repos/NAME.
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

// centrePages reads all pages of a listing.
func centrePages[T any](ctx context.Context, d dataCenter, a answer, path string) ([]T, error) {
	var all []T
	for start, pages := 0, 0; pages < maxPages; pages++ {
		var got struct {
			Values        []T
			IsLastPage    *bool
			NextPageStart *int
		}
		if _, err := d.do(ctx, a, http.MethodGet, fmt.Sprintf("%s?limit=100&start=%d", path, start), nil, &got); err != nil {
			return nil, err
		}
		all = append(all, got.Values...)
		if got.NextPageStart == nil || *got.NextPageStart <= start || got.IsLastPage != nil && *got.IsLastPage {
			break
		}
		start = *got.NextPageStart
	}
	return all, nil
}

func (d dataCenter) list(ctx context.Context, commit string) (map[string]Status, error) {
	builds, err := centrePages[build](ctx, d, dataCenterStatus, "build-status/latest/commits/"+commit)
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
	return Pull{Number: is.ID, Head: is.FromRef.LatestCommit, Target: strings.TrimPrefix(is.ToRef.ID, "refs/heads/"), Fork: from == 0 || from != into}
}

func (d dataCenter) open(ctx context.Context) ([]Pull, error) {
	got, err := centrePages[centreRequest](ctx, d, dataCenterPull, d.path("pull-requests")) // the open ones, newest first
	return pullsOf(got, centreRequest.pull), err
}

func (d dataCenter) pull(ctx context.Context, number int) (Pull, error) {
	var is centreRequest
	if _, err := d.do(ctx, dataCenterPull, http.MethodGet, d.path(fmt.Sprintf("pull-requests/%d", number)), nil, &is); err != nil {
		return Pull{}, err
	}
	return is.pull(), nil
}

// self reads a header of every answer to an authenticated user.
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

// comments reads the activities of a pull request; there is no list of comments alone.
func (d dataCenter) comments(ctx context.Context, number int, _ time.Time) ([]comment, error) {
	got, err := centrePages[struct {
		Action  string
		Comment *struct {
			ID      int64
			Version int
			Text    string
			Author  struct{ Name string }
		}
	}](ctx, d, dataCenterComment, d.path(fmt.Sprintf("pull-requests/%d/activities", number)))
	var all []comment
	for _, a := range got {
		if c := a.Comment; a.Action == "COMMENTED" && c != nil {
			all = append(all, comment{id: c.ID, version: c.Version, author: c.Author.Name, body: c.Text})
		}
	}
	return all, err
}

func (d dataCenter) comment(ctx context.Context, number int, body string) error {
	_, err := d.do(ctx, dataCenterComment, http.MethodPost, d.path(fmt.Sprintf("pull-requests/%d/comments", number)), map[string]any{"text": body}, nil)
	return err
}

func (d dataCenter) edit(ctx context.Context, number int, c comment, body string) error {
	path := d.path(fmt.Sprintf("pull-requests/%d/comments/%d", number, c.id))
	return edited(d.do(ctx, dataCenterComment, http.MethodPut, path, map[string]any{"text": body, "version": c.version}, nil))
}

// isDataCenterEvent reports whether an event key is one of the Data Center; the Cloud has others.
func isDataCenterEvent(key string) bool {
	return key == "repo:refs_changed" || strings.HasPrefix(key, "pr:") || strings.HasPrefix(key, "diagnostics:")
}

func dataCenterEvent(d delivery) (Event, error) {
	switch d.header.Get("X-Event-Key") {
	case "repo:refs_changed":
		return dataCenterPush(d)
	case "pr:opened", "pr:from_ref_updated", "pr:modified", "pr:merged", "pr:declined", "pr:deleted":
		return dataCenterPullEvent(d)
	}
	return Event{}, nil
}

func dataCenterPullEvent(d delivery) (Event, error) {
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

// A centreRepository is a repository as the Data Center returns it.
type centreRepository struct {
	Slug    string
	Project struct{ Key string }
}

func (r centreRepository) path() string { return r.Project.Key + "/" + r.Slug }

func dataCenterPush(d delivery) (Event, error) {
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
