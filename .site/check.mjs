// Checks the built site: every link inside leads to a page and an anchor that exist, and nothing is loaded from another host.
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { root } from './pages.mjs'

const dist = root + '.site/.build/dist/'
const files = readdirSync(dist, { recursive: true }).filter(name => name.endsWith('.html'))
const ids = new Map(files.map(name => [name, new Set([...readFileSync(dist + name, 'utf8').matchAll(/ id="([^"]*)"/g)].map(m => m[1]))]))
const wrong = []
let links = 0

for (const name of files) {
  const html = readFileSync(dist + name, 'utf8')
  for (const [, tag, attribute, target] of html.matchAll(/<(a|link|script|img)\b[^>]*? (href|src)="([^"]*)"/g)) {
    if (target.startsWith('data:')) continue
    if (/^[a-z]+:/.test(target) || target.startsWith('//')) {
      if (tag !== 'a') wrong.push(`${name} loads ${target} from another host`)
      continue
    }
    links++
    const [path, anchor] = target.replaceAll('&amp;', '&').split('#')
    const page = path ? fileOf(path) : name
    if (!page) wrong.push(`${name} links to ${target}, which is not there`)
    else if (anchor && ids.has(page) && !ids.get(page).has(decodeURIComponent(anchor))) wrong.push(`${name} links to ${target}, and ${page} has no such heading`)
  }
}
for (const name of readdirSync(dist, { recursive: true }).filter(name => name.endsWith('.css'))) {
  for (const [, url] of readFileSync(dist + name, 'utf8').matchAll(/url\(["']?(https?:[^)"']*)/g)) wrong.push(`${name} loads ${url} from another host`)
}

function fileOf(path) {
  const name = decodeURIComponent(path).replace(/^\//, '')
  return [name + '.html', join(name, 'index.html'), name].find(n => n && existsSync(dist + n) && statSync(dist + n).isFile())
}

for (const text of wrong) console.error(text)
console.log(`${files.length} pages, ${links} links, ${wrong.length} wrong`)
process.exit(wrong.length ? 1 : 0)
