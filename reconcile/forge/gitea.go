package forge

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"headgate.dev/headgate/reconcile/report"
)

// KindGitea is Gitea and Forgejo.
const KindGitea Kind = "gitea"

var giteaForge = Forge{
	Kind: KindGitea,
	Name: "Gitea",
	Also: "Forgejo",
	addresses: addresses{
		public:  func(host string) bool { return host == "codeberg.org" || host == "gitea.com" },
		labels:  []string{"gitea", "forgejo"},
		apiPath: "/",
	},
	pipeline:      pipeline{name: "Gitea", also: "Forgejo", token: "GITEA_TOKEN", read: giteaActions},
	webhook:       webhook{header: "X-Gitea-Event", proves: giteaProves, event: hubEvent("X-Gitea-Event")},
	dialect:       report.Dialect{MaxBytes: 65_536},
	authorization: func(token string) string { return "token " + token },
	open: func(at Repository, api string, over *http.Client) (client, error) {
		return gitea{at: at, api: api, client: over}, nil
	},
}

// giteaActions reads the environment of a workflow of Gitea or Forgejo, which has the variables of
// another forge, too.
func giteaActions(env func(string) string) (Workflow, bool) {
	w, ok := actionsWorkflow(env)
	return w, ok && (env("GITEA_ACTIONS") == "true" || env("FORGEJO_ACTIONS") == "true")
}

// gitea is a client of Gitea or Forgejo.
type gitea struct {
	at     Repository
	api    string
	client *http.Client
}

// within returns a client for one request: the SDK takes its context from the client. It
// does not ask for the version, which some builds give in a form that the SDK rejects.
func (g gitea) within(ctx context.Context) (*sdk.Client, error) {
	return sdk.NewClient(g.api, sdk.SetGiteaVersion(""), sdk.SetHTTPClient(g.client), sdk.SetContext(ctx), sdk.SetUserAgent("headgate"))
}

func (g gitea) list(ctx context.Context, commit string) (map[string]Status, error) {
	client, err := g.within(ctx)
	if err != nil {
		return nil, err
	}
	current, newest := map[string]Status{}, map[string]int64{}
	for page, pages := 1, 0; page != 0 && pages < maxPages; pages++ {
		got, resp, err := client.ListStatuses(g.at.Owner, g.at.Name, commit, sdk.ListStatusesOption{ListOptions: sdk.ListOptions{Page: page, PageSize: 50}})
		if err != nil {
			return nil, g.trouble(resp, err)
		}
		for _, s := range got {
			// They are sorted by second, newest first. Within one second only the id shows the order.
			if s == nil || s.ID < newest[s.Context] {
				continue
			}
			newest[s.Context] = s.ID
			current[s.Context] = Status{
				Commit: commit, Context: s.Context, State: report.State(s.State),
				Description: s.Description, TargetURL: s.TargetURL,
			}
		}
		page = resp.NextPage
	}
	return current, nil
}

// keep cuts the description: Gitea takes any length, but shows no more.
func (g gitea) keep(s Status) Status {
	s.Description, s.Pull = cut(s.Description, 255), 0
	return s
}

func (g gitea) create(ctx context.Context, s Status) error {
	client, err := g.within(ctx)
	if err != nil {
		return err
	}
	_, resp, err := client.CreateStatus(g.at.Owner, g.at.Name, s.Commit, sdk.CreateStatusOption{
		State: sdk.StatusState(s.State), Context: s.Context, Description: s.Description, TargetURL: s.TargetURL,
	})
	if err != nil {
		return g.trouble(resp, err)
	}
	return nil
}

func (g gitea) trouble(resp *sdk.Response, err error) error {
	return g.refused(answer{right: "the scope write:repository, and its user write access to the repository"}, resp, err)
}

// refused returns the error for a request and its answer.
func (g gitea) refused(a answer, resp *sdk.Response, err error) error {
	a.forge, a.of, a.err = "Gitea", g.at.String(), err
	if resp != nil {
		a.resp = resp.Response
		// If the answer is not the API's own, the SDK repeats request and body.
		if said := err.Error(); !strings.HasPrefix(said, "unknown API error") {
			a.said = said
		}
	}
	return a.trouble(time.Now())
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
	for page, pages := 1, 0; page != 0 && pages < maxPages; pages++ {
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
	for page, pages := 1, 0; page != 0 && pages < maxPages; pages++ {
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

// giteaProves checks the signature of the payload: if Gitea sends a form, it signs the field.
func giteaProves(d delivery, secret string) bool {
	return signed(d.payload, d.header.Get("X-Gitea-Signature"), secret)
}
