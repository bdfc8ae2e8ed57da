package forge

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"headgate.dev/headgate/reconcile/report"
)

// A build is a status, as Bitbucket Cloud and Data Center have it.
type build struct {
	Key         string `json:"key"`
	Name        string `json:"name"`
	State       string `json:"state"`
	Description string `json:"description"`
	URL         string `json:"url"`
}

// buildKey is the key of a context: 40 characters are allowed of it.
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

// status is a build of ours; that of another is none that we post.
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

// keepBuild is the status that a build says. It has to link somewhere.
func keepBuild(s Status, commit string) Status {
	s.Description, s.Pull = cut(s.Description, 255), 0
	if s.State == report.Error {
		s.State = report.Failure
	}
	s.TargetURL = cmp.Or(s.TargetURL, commit)
	return s
}

// bitbucket is Bitbucket Cloud.
type bitbucket struct{ rest }

var (
	bitbucketStatus  = answer{right: "the scope repository (an access token: Repositories, write)"}
	bitbucketPull    = answer{doing: "read pull requests", right: "the scope pullrequest (an access token: Pull requests, read)"}
	bitbucketComment = answer{doing: "comment on pull requests", right: "the scope pullrequest (an access token: Pull requests, write)"}
)

func (b bitbucket) path(below string) string { return "repositories/" + b.at.String() + "/" + below }

// A leaf is a page of a listing. Pages are counted here: where the next one is to be the
// server may say what it likes.
type leaf[T any] struct {
	Values []T    `json:"values"`
	Next   string `json:"next"`
}

// leaves reads all pages of a listing. Of pull requests 50 are on one at most.
func leaves[T any](ctx context.Context, b bitbucket, a answer, path string) ([]T, error) {
	var all []T
	for page := 1; page <= mostPages; page++ {
		var got leaf[T]
		if _, err := b.do(ctx, a, http.MethodGet, fmt.Sprintf("%s?pagelen=50&page=%d", b.path(path), page), nil, &got); err != nil {
			return nil, err
		}
		all = append(all, got.Values...)
		if got.Next == "" {
			break
		}
	}
	return all, nil
}

// currentOf are our statuses by their contexts: a key has one build.
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
	builds, err := leaves[build](ctx, b, bitbucketStatus, "commit/"+commit+"/statuses")
	return currentOf(builds, commit), err
}

func (b bitbucket) keep(s Status) Status { return keepBuild(s, b.at.page()+"/commits/"+s.Commit) }

func (b bitbucket) create(ctx context.Context, s Status) error {
	_, err := b.do(ctx, bitbucketStatus, http.MethodPost, b.path("commit/"+s.Commit+"/statuses/build"), buildOf(s), nil)
	return err
}

// A cloudRequest is a pull request as Bitbucket Cloud tells it.
type cloudRequest struct {
	ID     int
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
	return Pull{Number: is.ID, Head: is.Source.Commit.Hash, Target: is.Destination.Branch.Name, Fork: from == "" || from != into}
}

func (b bitbucket) open(ctx context.Context) ([]Pull, error) {
	got, err := leaves[cloudRequest](ctx, b, bitbucketPull, "pullrequests") // that are open, newest first
	return pullsOf(got, cloudRequest.pull), err
}

func pullsOf[T any](all []T, pull func(T) Pull) []Pull {
	var pulls []Pull
	for _, is := range all {
		pulls = append(pulls, pull(is))
	}
	return pulls
}

// pull asks for the commits too: of the head of a pull request Bitbucket tells twelve digits.
func (b bitbucket) pull(ctx context.Context, number int) (Pull, error) {
	var is cloudRequest
	path := b.path(fmt.Sprintf("pullrequests/%d", number))
	if _, err := b.do(ctx, bitbucketPull, http.MethodGet, path, nil, &is); err != nil {
		return Pull{}, err
	}
	pull := is.pull()
	head := pull.Head
	if head != "" && !isCommit(head) {
		var commits leaf[struct{ Hash string }]
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

// self is "" for the token of a repository or workspace, which is of no user.
func (b bitbucket) self(ctx context.Context) (string, error) {
	var user struct{ UUID string }
	got, err := b.do(ctx, answer{doing: "read who it is", right: "the scope account"}, http.MethodGet, "user", nil, &user)
	if refusedWith(got, err, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound) {
		return "", nil
	}
	return user.UUID, err
}

func (b bitbucket) comments(ctx context.Context, number int) ([]comment, error) {
	got, err := leaves[struct {
		ID      int64
		Deleted bool
		Content struct{ Raw string }
		User    struct{ UUID string }
	}](ctx, b, bitbucketComment, fmt.Sprintf("pullrequests/%d/comments", number))
	var all []comment
	for _, c := range got {
		if !c.Deleted {
			all = append(all, comment{id: c.ID, author: c.User.UUID, body: c.Content.Raw})
		}
	}
	return all, err
}

func (b bitbucket) comment(ctx context.Context, number int, body string) error {
	_, err := b.say(ctx, http.MethodPost, fmt.Sprintf("pullrequests/%d/comments", number), body)
	return err
}

func (b bitbucket) edit(ctx context.Context, number int, c comment, body string) error {
	return edited(b.say(ctx, http.MethodPut, fmt.Sprintf("pullrequests/%d/comments/%d", number, c.id), body))
}

func (b bitbucket) say(ctx context.Context, method, path, body string) (reply, error) {
	return b.do(ctx, bitbucketComment, method, b.path(path), map[string]any{"content": map[string]string{"raw": body}}, nil)
}

// edited is the error of an edit: Bitbucket lets nobody but the author change a comment.
func edited(got reply, err error) error {
	if refusedWith(got, err, http.StatusForbidden) {
		return foreignError{err}
	}
	return err
}

// dataCenter is Bitbucket Data Center, and was Server.
type dataCenter struct{ rest }

var (
	dataCenterStatus  = answer{right: "the permission “Repository read”"}
	dataCenterPull    = answer{doing: "read pull requests", right: "the permission “Repository read”"}
	dataCenterComment = answer{doing: "comment on pull requests", right: "the permission “Repository read”"}
)

func (d dataCenter) path(below string) string {
	return "api/latest/projects/" + d.at.Owner + "/repos/" + d.at.Name + "/" + below
}

// sheets reads all pages of a listing.
func sheets[T any](ctx context.Context, d dataCenter, a answer, path string) ([]T, error) {
	var all []T
	for start, pages := 0, 0; pages < mostPages; pages++ {
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
	builds, err := sheets[build](ctx, d, dataCenterStatus, "build-status/latest/commits/"+commit)
	return currentOf(builds, commit), err
}

func (d dataCenter) keep(s Status) Status { return keepBuild(s, d.at.page()+"/commits/"+s.Commit) }

func (d dataCenter) create(ctx context.Context, s Status) error {
	_, err := d.do(ctx, dataCenterStatus, http.MethodPost, d.path("commits/"+s.Commit+"/builds"), buildOf(s), nil)
	return err
}

// A centreRequest is a pull request as Data Center tells it.
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
	got, err := sheets[centreRequest](ctx, d, dataCenterPull, d.path("pull-requests")) // that are open, newest first
	return pullsOf(got, centreRequest.pull), err
}

func (d dataCenter) pull(ctx context.Context, number int) (Pull, error) {
	var is centreRequest
	if _, err := d.do(ctx, dataCenterPull, http.MethodGet, d.path(fmt.Sprintf("pull-requests/%d", number)), nil, &is); err != nil {
		return Pull{}, err
	}
	return is.pull(), nil
}

// self is in a header of every answer to somebody whom it knows.
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

// comments are among what happened to a pull request; there is no list of them alone.
func (d dataCenter) comments(ctx context.Context, number int) ([]comment, error) {
	got, err := sheets[struct {
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
