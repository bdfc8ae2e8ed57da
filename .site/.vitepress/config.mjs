import { defineConfig } from 'vitepress'
import { address, menu, repository } from '../pages.mjs'

const sidebar = items => items.map(({ text, page, link, items: below, collapsed }) => ({
  text, ...(page || link ? { link: link ?? address(page) } : {}), ...(below ? { items: sidebar(below) } : {}), ...(collapsed ? { collapsed: true } : {}),
}))

export default defineConfig({
  title: 'Headgate',
  description: 'See which Crossplane resource types a pull request activates, breaks and costs, before you merge it.',
  lang: 'en',
  srcDir: '.build/pages',
  outDir: '.build/dist',
  cacheDir: '.build/cache',
  cleanUrls: true,
  head: [['link', { rel: 'icon', href: 'data:,' }]],
  markdown: {
    anchor: { slugify }, // as forges make anchors, so that a link works on both
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
  },
  vite: { build: { chunkSizeWarningLimit: 2000 } },
  themeConfig: {
    nav: [
      { text: 'Install', link: '/install' },
      { text: 'Guards', link: '/manual/guards' },
      { text: 'Reference', link: '/reference/' },
      { text: 'Changelog', link: '/changelog' },
    ],
    sidebar: sidebar(menu),
    outline: [2, 3],
    socialLinks: [{ icon: 'github', link: repository }],
    search: { provider: 'local', options: { miniSearch: { searchOptions: { fuzzy: 0.1, prefix: true, boost: { title: 4, text: 2, titles: 1 } } } } },
    footer: { message: 'Apache-2.0' },
  },
})

function slugify(text) {
  return text.trim().toLowerCase().replaceAll(' ', '-').replace(/[^\p{L}\p{N}_-]/gu, '')
}
