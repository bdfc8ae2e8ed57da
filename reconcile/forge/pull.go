package forge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	sdk "code.gitea.io/sdk/gitea"
	"github.com/google/go-github/v89/github"
)

// A Pull is a pull request.
type Pull struct {
	Number int
	Head   string // the newest commit of its branch, full hex
	Target string // the branch that it is to be merged into
	Fork   bool   // its branch is in another repository, or it is not known in which
	Merge  string // the ref of a commit that merges it into its target, where the forge makes one; "" where none does
}

// A comment on a pull request.
type comment struct {
	id     int64
	author string
	body   string

	thread  int64 // that it starts, on Azure DevOps
	version int   // on Bitbucket Data Center
}

// A desk is where a forge talks about pull requests.
type desk interface {
	pull(ctx context.Context, number int) (Pull, error)
	// open are those that are open. Of a head it may tell the first digits only.
	open(ctx context.Context) ([]Pull, error)
	// self is the user of the token; "" where the forge tells nobody, and lets only authors edit.
	self(ctx context.Context) (string, error)
	comments(ctx context.Context, number int) ([]comment, error)
	comment(ctx context.Context, number int, body string) error
	// edit fails with a foreignError for what somebody else may have written.
	edit(ctx context.Context, number int, c comment, body string) error
}

// A foreignError is that of an edit which the forge lets nobody but the author do.
type foreignError struct{ error }

// Pulls are the pull requests of a repository.
type Pulls struct {
	desk
	courier *courier
	kind    Kind

	listed map[int]Pull // by Open, the last time
}

// mostComment is how many bytes a comment may have. GitLab and Azure DevOps would take more
// than GitHub, and nobody would read it.
func (k Kind) mostComment() int {
	if k.isBitbucket() {
		return 32_768
	}
	return 65_536
}

// room is how many bytes there are for the comment of a key.
func (p *Pulls) room(key string) int { return p.kind.mostComment() - len(p.kind.markOf(key)) }

// Pull reads a pull request.
func (p *Pulls) Pull(ctx context.Context, number int) (Pull, error) {
	pull, err := p.pull(ctx, number)
	if err != nil {
		return Pull{}, p.courier.discreet(err)
	}
	if !isCommit(pull.Head) {
		return Pull{}, fmt.Errorf("pull request %d: its head is %q, and no commit", number, plain(pull.Head))
	}
	pull.Merge = p.kind.mergeOf(number)
	return pull, nil
}

// Open lists the pull requests that are open, newest first. One without a head is none: its branch
// is gone. It is for one goroutine at a time.
func (p *Pulls) Open(ctx context.Context) ([]Pull, error) {
	all, err := p.open(ctx)
	if err != nil {
		return nil, p.courier.discreet(err)
	}
	listed := make(map[int]Pull, len(all))
	for _, pull := range all {
		if known := p.listed[pull.Number]; pull.Head != "" && strings.HasPrefix(known.Head, pull.Head) {
			pull.Head = known.Head
		} else if pull.Head != "" && !isCommit(pull.Head) {
			whole, err := p.pull(ctx, pull.Number)
			if err != nil {
				return nil, p.courier.discreet(err)
			}
			pull.Head = whole.Head
		}
		if pull.Number > 0 && isCommit(pull.Head) {
			pull.Merge = p.kind.mergeOf(pull.Number)
			listed[pull.Number] = pull
		}
	}
	p.listed = listed
	return slices.SortedFunc(maps.Values(listed), func(a, b Pull) int { return cmp.Compare(b.Number, a.Number) }), nil
}

// mergeOf is where a forge keeps the commit that merges a pull request into its target.
func (k Kind) mergeOf(number int) string {
	switch k {
	case KindGitHub, KindAzureDevOps:
		return fmt.Sprintf("refs/pull/%d/merge", number)
	case KindGitLab:
		return fmt.Sprintf("refs/merge-requests/%d/merge", number)
	case KindBitbucketDataCenter:
		return fmt.Sprintf("refs/pull-requests/%d/merge", number)
	}
	return ""
}

// Comment writes the one comment of a key on a pull request, or changes it. It finds the
// comment by a mark that nobody sees, and by who wrote it: the mark alone anybody can copy, and
// would have us overwrite what they wrote, or hide ours.
func (p *Pulls) Comment(ctx context.Context, number int, key, body string) error {
	if err := p.write(ctx, number, key, body); err != nil {
		return p.courier.discreet(fmt.Errorf("pull request %d: %w", number, err))
	}
	return nil
}

func (p *Pulls) write(ctx context.Context, number int, key, body string) error {
	if _, err := p.courier.token(ctx); err != nil { // from now on it can be hidden
		return err
	}
	mark := p.kind.markOf(key)
	body = mark + p.kind.dialect(p.courier.hide(body))
	if most := p.kind.mostComment(); len(body) > most {
		return fmt.Errorf("a comment of %d bytes is more than %d", len(body), most)
	}
	mark = strings.TrimSpace(mark)
	all, err := p.comments(ctx, number)
	if err != nil {
		return err
	}
	marked := slices.DeleteFunc(all, func(c comment) bool { return !strings.HasPrefix(strings.TrimSpace(c.body), mark) })
	if len(marked) == 0 {
		return p.comment(ctx, number, body)
	}
	self, err := p.self(ctx)
	if err != nil {
		return err
	}
	for _, c := range marked {
		switch {
		case self != "" && !strings.EqualFold(c.author, self):
		case normal(c.body) == normal(body):
			return nil
		default:
			err := p.edit(ctx, number, c, body)
			if _, foreign := errors.AsType[foreignError](err); self != "" || !foreign {
				return err
			}
		}
	}
	return p.comment(ctx, number, body)
}

var unmarked = regexp.MustCompile(`[^A-Za-z0-9./]+`)

// markOf is the mark of a key, which nobody sees: a comment in HTML, or on Bitbucket, which
// shows HTML as text, the target of a link that there is not.
func (k Kind) markOf(key string) string {
	key = unmarked.ReplaceAllString(key, "-")
	if k.isBitbucket() {
		return "[//]: # (" + key + ")\n\n"
	}
	return "<!-- " + key + " -->\n"
}

var (
	folded = regexp.MustCompile(`(?m)^<details><summary>(.*)</summary>$`)
	tags   = strings.NewReplacer("<code>", "", "</code>", "")
)

// dialect is a comment as the forge can show it: Bitbucket folds nothing. Text that is quoted
// has no line that starts with a tag.
func (k Kind) dialect(body string) string {
	if !k.isBitbucket() {
		return body
	}
	body = folded.ReplaceAllStringFunc(body, func(line string) string {
		return "**" + tags.Replace(folded.FindStringSubmatch(line)[1]) + "**"
	})
	return strings.ReplaceAll(body, "\n</details>\n", "\n")
}

// normal is a body as every forge gives it back: some write line breaks otherwise.
func normal(body string) string {
	return strings.TrimSpace(strings.ReplaceAll(body, "\r\n", "\n"))
}

func (g gitHub) pull(ctx context.Context, number int) (Pull, error) {
	got, resp, err := g.client.PullRequests.Get(ctx, g.at.Owner, g.at.Name, number)
	if err != nil {
		return Pull{}, g.reading(resp, err)
	}
	return gitHubPull(got), nil
}

func gitHubPull(is *github.PullRequest) Pull {
	from, into := is.GetHead().GetRepo().GetID(), is.GetBase().GetRepo().GetID()
	return Pull{Number: is.GetNumber(), Head: is.GetHead().GetSHA(), Target: is.GetBase().GetRef(), Fork: from == 0 || from != into}
}

func (g gitHub) open(ctx context.Context) ([]Pull, error) {
	var all []Pull
	for page, pages := 1, 0; page != 0 && pages < mostPages; pages++ {
		got, resp, err := g.client.PullRequests.List(ctx, g.at.Owner, g.at.Name, &github.PullRequestListOptions{
			State: "open", Sort: "created", Direction: "desc", ListOptions: github.ListOptions{Page: page, PerPage: 100},
		})
		if err != nil {
			return nil, g.reading(resp, err)
		}
		for _, is := range got {
			all = append(all, gitHubPull(is))
		}
		page = resp.NextPage
	}
	return all, nil
}

func (g gitHub) reading(resp *github.Response, err error) error {
	return g.refused(answer{doing: "read pull requests", right: "the permission “Pull requests: read and write”"}, resp, err)
}

func (g gitHub) self(ctx context.Context) (string, error) {
	user, resp, err := g.client.Users.Get(ctx, "")
	if err != nil && resp != nil && (resp.StatusCode == http.StatusForbidden || resp.StatusCode == http.StatusNotFound) {
		if _, limited := errors.AsType[*github.RateLimitError](err); !limited {
			return g.bot(ctx), nil // the token of a workflow, or of another App, is of no user
		}
	}
	if err != nil {
		return "", g.refused(answer{doing: "read who it is"}, resp, err)
	}
	return user.GetLogin(), nil
}

// bot is who an App comments as, which its tokens are told by GraphQL alone. Where that is not to be
// had it is taken for the App of workflows.
func (g gitHub) bot(ctx context.Context) string {
	var said struct {
		Data struct{ Viewer struct{ Login string } }
	}
	at := g.client.BaseURL()
	if server, ok := strings.CutSuffix(at, "v3/"); ok {
		at = server
	}
	req, err := g.client.NewRequest(ctx, http.MethodPost, at+"graphql", map[string]string{"query": "{viewer{login}}"})
	if err == nil {
		_, err = g.client.Do(req, &said)
	}
	login := strings.TrimSuffix(said.Data.Viewer.Login, "[bot]")
	if err != nil || login == "" {
		login = "github-actions"
	}
	return login + "[bot]"
}

func (g gitHub) comments(ctx context.Context, number int) ([]comment, error) {
	var all []comment
	for page, pages := 1, 0; page != 0 && pages < mostPages; pages++ {
		got, resp, err := g.client.Issues.ListComments(ctx, g.at.Owner, g.at.Name, number, &github.IssueListCommentsOptions{ListOptions: github.ListOptions{Page: page, PerPage: 100}})
		if err != nil {
			return nil, g.commenting(resp, err)
		}
		for _, c := range got {
			all = append(all, comment{id: c.GetID(), author: c.GetUser().GetLogin(), body: c.GetBody()})
		}
		page = resp.NextPage
	}
	return all, nil
}

func (g gitHub) comment(ctx context.Context, number int, body string) error {
	if _, resp, err := g.client.Issues.CreateComment(ctx, g.at.Owner, g.at.Name, number, &github.IssueComment{Body: &body}); err != nil {
		return g.commenting(resp, err)
	}
	return nil
}

func (g gitHub) edit(ctx context.Context, _ int, c comment, body string) error {
	if _, resp, err := g.client.Issues.EditComment(ctx, g.at.Owner, g.at.Name, c.id, &github.IssueComment{Body: &body}); err != nil {
		return g.commenting(resp, err)
	}
	return nil
}

func (g gitHub) commenting(resp *github.Response, err error) error {
	return g.refused(answer{doing: "comment on pull requests", right: "the permission “Pull requests: read and write”"}, resp, err)
}

func (g gitea) pull(ctx context.Context, number int) (Pull, error) {
	client, err := g.within(ctx)
	if err != nil {
		return Pull{}, err
	}
	got, resp, err := client.GetPullRequest(g.at.Owner, g.at.Name, int64(number))
	if err != nil {
		return Pull{}, g.reading(resp, err)
	}
	if got == nil || got.Head == nil || got.Base == nil {
		return Pull{}, fmt.Errorf("Gitea: pull request %d has no head or no target", number) //nolint:staticcheck // a name
	}
	return giteaPull(got), nil
}

func giteaPull(is *sdk.PullRequest) Pull {
	from, into := is.Head.RepoID, is.Base.RepoID
	return Pull{Number: int(is.Index), Head: is.Head.Sha, Target: is.Base.Ref, Fork: from == 0 || from != into}
}

func (g gitea) open(ctx context.Context) ([]Pull, error) {
	client, err := g.within(ctx)
	if err != nil {
		return nil, err
	}
	var all []Pull
	for page, pages := 1, 0; page != 0 && pages < mostPages; pages++ {
		got, resp, err := client.ListRepoPullRequests(g.at.Owner, g.at.Name, sdk.ListPullRequestsOptions{State: sdk.StateOpen, ListOptions: sdk.ListOptions{Page: page, PageSize: 50}})
		if err != nil {
			return nil, g.reading(resp, err)
		}
		for _, is := range got {
			if is != nil && is.Head != nil && is.Base != nil {
				all = append(all, giteaPull(is))
			}
		}
		page = resp.NextPage
	}
	return all, nil
}

func (g gitea) reading(resp *sdk.Response, err error) error {
	return g.refused(answer{doing: "read pull requests", right: "the scope read:repository"}, resp, err)
}

func (g gitea) self(ctx context.Context) (string, error) {
	client, err := g.within(ctx)
	if err != nil {
		return "", err
	}
	user, resp, err := client.GetMyUserInfo()
	if err != nil {
		return "", g.refused(answer{doing: "read who it is", right: "the scope read:user"}, resp, err)
	}
	return user.UserName, nil
}

func (g gitea) comments(ctx context.Context, number int) ([]comment, error) {
	client, err := g.within(ctx)
	if err != nil {
		return nil, err
	}
	var all []comment
	for page, pages := 1, 0; page != 0 && pages < mostPages; pages++ {
		got, resp, err := client.ListIssueComments(g.at.Owner, g.at.Name, int64(number), sdk.ListIssueCommentOptions{ListOptions: sdk.ListOptions{Page: page, PageSize: 50}})
		if err != nil {
			return nil, g.commenting(resp, err)
		}
		for _, c := range got {
			if c != nil && c.Poster != nil {
				all = append(all, comment{id: c.ID, author: c.Poster.UserName, body: c.Body})
			}
		}
		page = resp.NextPage
	}
	return all, nil
}

func (g gitea) comment(ctx context.Context, number int, body string) error {
	client, err := g.within(ctx)
	if err != nil {
		return err
	}
	if _, resp, err := client.CreateIssueComment(g.at.Owner, g.at.Name, int64(number), sdk.CreateIssueCommentOption{Body: body}); err != nil {
		return g.commenting(resp, err)
	}
	return nil
}

func (g gitea) edit(ctx context.Context, _ int, c comment, body string) error {
	client, err := g.within(ctx)
	if err != nil {
		return err
	}
	if _, resp, err := client.EditIssueComment(g.at.Owner, g.at.Name, c.id, sdk.EditIssueCommentOption{Body: body}); err != nil {
		return g.commenting(resp, err)
	}
	return nil
}

func (g gitea) commenting(resp *sdk.Response, err error) error {
	return g.refused(answer{doing: "comment on pull requests", right: "the scope write:issue"}, resp, err)
}
