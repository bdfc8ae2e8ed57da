package forge

import (
	"context"
	"net/http"
	"strings"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"headgate.dev/headgate/reconcile/report"
)

// gitea is Gitea and Forgejo.
type gitea struct {
	at     Repository
	api    string
	client *http.Client
}

// within is a client for one request: the SDK takes its context from the client. It
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
	for page, pages := 1, 0; page != 0 && pages < mostPages; pages++ {
		got, resp, err := client.ListStatuses(g.at.Owner, g.at.Name, commit, sdk.ListStatusesOption{ListOptions: sdk.ListOptions{Page: page, PageSize: 50}})
		if err != nil {
			return nil, g.trouble(resp, err)
		}
		for _, s := range got {
			// They come by second, newest first. Within one second only the id tells.
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

// keep: it takes any length; more than this nobody sees.
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

// refused makes of what was asked, and what came back, an error.
func (g gitea) refused(a answer, resp *sdk.Response, err error) error {
	a.forge, a.of, a.err = "Gitea", g.at.String(), err
	if resp != nil {
		a.resp = resp.Response
		// Where the answer is not the API's own the SDK repeats request and body.
		if said := err.Error(); !strings.HasPrefix(said, "unknown API error") {
			a.said = said
		}
	}
	return a.trouble(time.Now())
}
