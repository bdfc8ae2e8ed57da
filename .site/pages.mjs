// The pages of the site: which file of the repository is which page, and where the menu has it.
import { readdirSync, readFileSync } from 'node:fs'

export const root = new URL('..', import.meta.url).pathname
export const repository = 'https://github.com/headgate-dev/headgate'

// folder returns the Markdown files of a folder, sorted.
const folder = name => readdirSync(root + name).filter(file => file.endsWith('.md')).sort()
const title = file => readFileSync(root + file, 'utf8').match(/^# (.*)/m)[1]

const guards = folder('reconcile/manual/guards').map(file => ({
  text: file.replace('.md', '').replaceAll('-', ' '), page: 'manual/guards/' + file, from: 'reconcile/manual/guards/' + file,
}))
const verbs = folder('cmd/headgate/reference').filter(file => file !== 'flags.md').map(file => ({
  text: file.replace('.md', ''), page: 'reference/' + file, from: 'cmd/headgate/reference/' + file,
}))
const manual = (text, name) => ({ text, page: `manual/${name}.md`, from: `reconcile/manual/${name}.md` })

// menu lists every page once, in the order of the menu.
export const menu = [
  {
    text: 'Start', items: [
      { text: 'What Headgate is', page: 'index.md', from: 'README.md' },
      { text: 'Install', page: 'install.md', from: '.site/install.md' },
      { text: 'Three ways in', page: 'ways.md', from: '.site/ways.md' },
      { text: 'Concepts', page: 'concepts.md', from: '.site/concepts.md' },
      { text: 'Quickstart', page: 'quickstart.md', from: 'examples/quickstart/README.md' },
    ],
  },
  {
    text: 'Previews', items: [
      { text: 'Previews of pull requests', page: 'previews/index.md', from: 'examples/previews/README.md' },
      { text: 'On GitHub', page: 'previews/github.md', from: 'examples/github-actions/README.md' },
      { text: 'On GitLab', page: 'previews/gitlab.md', from: 'examples/gitlab-ci/README.md' },
      { text: 'On Gitea and Forgejo', page: 'previews/gitea.md', from: 'examples/gitea-actions/README.md' },
      { text: 'By headgate run', page: 'previews/run.md', from: 'examples/run/pull-requests.md' },
      manual('Verdicts', 'verdicts'),
      manual('Who may approve', 'approvers'),
    ],
  },
  {
    text: 'Commits and packages', items: [
      { text: 'What a commit means', page: 'packages/commit.md', from: 'render/README.md' },
      { text: 'Packages in registries', page: 'packages/registry.md', from: 'examples/registry/README.md' },
      { text: 'Upgrades by Renovate', page: 'packages/renovate.md', from: 'examples/renovate/README.md' },
    ],
  },
  {
    text: 'What a pass does', items: [
      { text: 'Overview', page: 'manual/index.md', from: 'reconcile/README.md' },
      { ...manual('Guards', 'guards'), collapsed: true, items: guards },
      manual('Approvals', 'approvals'),
      manual('Which commits are applied', 'commits'),
      manual('Order', 'order'),
      { text: 'Order: an example', page: 'manual/order-example.md', from: 'examples/order/README.md' },
      manual('Ownership', 'ownership'),
      manual('Syncs of teams', 'teams'),
      manual('When an object is ready', 'health'),
      manual('Kept objects', 'retained'),
      manual('Deletions that wait', 'deletions'),
      manual('Deactivation', 'deactivation'),
      manual('Releases', 'releases'),
      manual('Ends of a sync', 'ends'),
    ],
  },
  {
    text: 'Operations', items: [
      { text: 'Observe', page: 'operations/observe.md', from: 'examples/observe/README.md' },
      { text: 'Run', page: 'operations/run.md', from: 'examples/run/README.md' },
      { text: 'The controller', page: 'operations/controller.md', from: 'examples/controller/README.md' },
      { text: 'Helm chart', page: 'operations/chart.md', from: 'examples/chart/README.md' },
      { text: 'Operate', page: 'operations/operate.md', from: 'examples/operate/README.md' },
      { text: 'Security', page: 'security.md', from: '.github/SECURITY.md' },
      { text: 'Security of the controller', page: 'operations/controller-security.md', from: 'examples/controller/security.md' },
      { text: 'Figures', page: 'figures.md', from: 'fixtures/bench/README.md' },
      { text: 'Figures of many syncs', page: 'figures-syncs.md', from: 'fixtures/bench/syncs.md' },
    ],
  },
  {
    text: 'Migration', items: [
      { text: 'Flux', page: 'migration/flux.md', from: '.site/migration/flux.md' },
      { text: 'Argo CD', page: 'migration/argo-cd.md', from: '.site/migration/argo-cd.md' },
      { text: 'Helm', page: 'migration/helm.md', from: '.site/migration/helm.md' },
      { text: 'kubectl', page: 'migration/kubectl.md', from: '.site/migration/kubectl.md' },
    ],
  },
  {
    text: 'Reference', items: [
      { text: 'The command line', page: 'reference/index.md', from: 'cmd/headgate/README.md', collapsed: true, items: verbs },
      { text: 'Shared flags', page: 'reference/flags.md', from: 'cmd/headgate/reference/flags.md' },
      { text: 'Fields of a Sync', page: 'reference/sync-fields.md', from: 'reconcile/api/v1alpha1/README.md' },
      {
        ...manual('Codes', 'codes'), collapsed: true, items: folder('reconcile/manual/codes').map(file => ({
          text: title('reconcile/manual/codes/' + file), page: 'manual/codes/' + file, from: 'reconcile/manual/codes/' + file,
        })),
      },
      { text: 'Metrics', link: '/operations/operate#metrics' },
      { text: 'Findings', page: 'reference/findings.md', from: 'render/findings.md' },
      { text: 'JSON schemas', page: 'reference/schemas.md', from: '.site/schemas.md' },
      { text: 'Support matrix', page: 'support.md', from: '.site/support.md' },
      { text: 'Compatibility', page: 'compatibility.md', from: '.site/compatibility.md' },
      { text: 'Changelog', page: 'changelog.md', from: 'CHANGELOG.md' },
      { text: 'Contributing', page: 'contributing.md', from: '.github/CONTRIBUTING.md' },
    ],
  },
]

// pages returns all pages of the menu.
export function pages(items = menu) {
  return items.flatMap(item => [...(item.page ? [item] : []), ...(item.items ? pages(item.items) : [])])
}

// address returns where the site serves a page.
export const address = page => '/' + page.replace(/(^|\/)index\.md$/, '$1').replace(/\.md$/, '')
