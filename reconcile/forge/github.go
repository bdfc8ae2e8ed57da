package forge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/google/go-github/v89/github"

	"headgate.dev/headgate/reconcile/report"
)

// gitHub is GitHub and GitHub Enterprise.
type gitHub struct {
	at     Repository
	client *github.Client // one for all requests: it remembers when its rate limit ends
}

func newGitHub(at Repository, api string, client *http.Client) (gitHub, error) {
	c, err := github.NewClient(github.WithHTTPClient(client), github.WithURLs(&api, nil), github.WithUserAgent("headgate"))
	if err != nil {
		return gitHub{}, fmt.Errorf("GitHub: %w", err)
	}
	return gitHub{at: at, client: c}, nil
}

// mostPages bounds a listing. What is not listed is posted once more than needed.
const mostPages = 20

func (g gitHub) list(ctx context.Context, commit string) (map[string]Status, error) {
	current := map[string]Status{}
	// The combined status has the newest of each context, so one page is nearly always all.
	for page, pages := 1, 0; page != 0 && pages < mostPages; pages++ {
		got, resp, err := g.client.Repositories.GetCombinedStatus(ctx, g.at.Owner, g.at.Name, commit, &github.ListOptions{Page: page, PerPage: 100})
		if err != nil {
			return nil, g.trouble(resp, err)
		}
		if got == nil { // the answer was null
			break
		}
		for _, s := range got.Statuses {
			current[s.GetContext()] = Status{
				Commit: commit, Context: s.GetContext(), State: report.State(s.GetState()),
				Description: s.GetDescription(), TargetURL: s.GetTargetURL(),
			}
		}
		page = resp.NextPage
	}
	return current, nil
}

func (g gitHub) keep(s Status) Status {
	s.Description, s.Pull = cut(s.Description, 140), 0
	return s
}

func (g gitHub) create(ctx context.Context, s Status) error {
	status := github.RepoStatus{State: new(string(s.State)), Context: &s.Context, Description: &s.Description}
	if s.TargetURL != "" {
		status.TargetURL = &s.TargetURL
	}
	if _, resp, err := g.client.Repositories.CreateStatus(ctx, g.at.Owner, g.at.Name, s.Commit, status); err != nil {
		return g.trouble(resp, err)
	}
	return nil
}

func (g gitHub) trouble(resp *github.Response, err error) error {
	return g.refused(answer{right: "the permission “Commit statuses: read and write” (a classic token: repo:status)"}, resp, err)
}

// refused makes of what was asked, and what came back, an error.
func (g gitHub) refused(a answer, resp *github.Response, err error) error {
	now := time.Now()
	if limit, ok := errors.AsType[*github.RateLimitError](err); ok {
		wait := min(max(0, limit.Rate.Reset.Sub(now)), longestWait)
		return &Later{After: wait, Err: fmt.Errorf("GitHub: the token's requests of this hour are used up: %s", cut(plain(limit.Message), 200))}
	}
	if limit, ok := errors.AsType[*github.AbuseRateLimitError](err); ok {
		wait := time.Minute // what GitHub asks for where it names no time
		if limit.RetryAfter != nil {
			wait = min(max(0, *limit.RetryAfter), longestWait)
		}
		return &Later{After: wait, Err: fmt.Errorf("GitHub: too many requests at once: %s", cut(plain(limit.Message), 200))}
	}
	a.forge, a.of, a.err = "GitHub", g.at.String(), err
	if resp != nil {
		a.resp = resp.Response
	}
	if refused, ok := errors.AsType[*github.ErrorResponse](err); ok {
		a.resp = refused.Response
		a.said = words(refused)
	}
	if a.resp != nil && strings.HasPrefix(a.resp.Header.Get("X-Github-Sso"), "required") {
		a.right = "to be authorised for the organisation's single sign-on"
	}
	return a.trouble(now)
}

// words is what GitHub says: a message, and one for each field that is wrong.
func words(r *github.ErrorResponse) string {
	said := []string{}
	if r.Message != "" {
		said = append(said, r.Message)
	}
	for _, e := range r.Errors {
		switch {
		case e.Message != "":
			said = append(said, e.Message)
		case e.Code != "":
			said = append(said, strings.TrimSpace(e.Field+" "+e.Code))
		}
	}
	return strings.Join(said, ": ")
}
