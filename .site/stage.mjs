// Copies the pages of the repository to .build/pages. A link to another page leads to that page of the site, an image is copied, and
// every other link leads to the file in the repository.
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { address, pages, repository, root } from './pages.mjs'

const out = root + '.site/.build/pages/'
const published = new Map(pages().map(p => [p.from, p.page]))
if (new Set(published.values()).size !== pages().length) throw new Error('two files of the menu have one page')
rmSync(out, { recursive: true, force: true })

for (const { from, page } of pages()) {
  let fenced = false
  const text = readFileSync(root + from, 'utf8').split('\n').map(line => {
    if (line.startsWith('```')) fenced = !fenced
    return fenced ? line : flags(line, page).replace(/(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)/g, (_, image, label, target) => `${image}[${inner(label, from, page)}](${link(target, from, page)})`)
  }).join('\n')
  mkdirSync(dirname(out + page), { recursive: true })
  writeFileSync(out + page, text)
}

// The addresses that the comments in files name.
const schemas = 'reconcile/api/v1alpha1/schemas/'
mkdirSync(out + 'public/schemas', { recursive: true })
for (const name of readdirSync(root + schemas)) copyFileSync(root + schemas + name, out + 'public/schemas/' + name)

// flags makes code of the flags in the help of a verb, which is plain text.
function flags(line, page) {
  if (!page.startsWith('reference/')) return line
  return line.split('`').map((part, i) => i % 2 ? part : part.replace(/(?<![\w-])--[a-z][a-z-]*(=[a-z-]+)?/g, '`$&`')).join('`')
}

// inner rewrites an image inside a link.
function inner(label, from, page) {
  return label.replace(/!\[([^\]]*)\]\(([^)\s]+)\)/g, (_, text, target) => `![${text}](${link(target, from, page)})`)
}

function link(target, from, page) {
  const [path, anchor] = target.split('#')
  const hash = anchor ? '#' + anchor : ''
  if (!path || /^[a-z]+:/.test(path)) return target
  let file = normalize(join(dirname(from), path)).replace(/\/$/, '')
  if (!existsSync(root + file)) throw new Error(`${from} links to ${target}, which does not exist`)
  const directory = statSync(root + file).isDirectory()
  const readme = directory ? join(file, 'README.md') : file
  if (published.has(readme)) return address(published.get(readme)) + hash
  if (/\.(svg|png)$/.test(file)) {
    const name = 'assets/' + file.replaceAll('/', '-')
    mkdirSync(out + 'public/assets', { recursive: true })
    copyFileSync(root + file, out + 'public/' + name)
    return '/' + name
  }
  return `${repository}/${directory ? 'tree' : 'blob'}/main/${file}${hash}`
}
