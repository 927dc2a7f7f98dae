/** What the build does besides bundling: everything here makes the first visit faster. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, constants } from 'node:zlib';
import type { Plugin, Rolldown } from 'vite';

/** Loads `src/early.ts` as a file of its own, before everything else. */
export const early: Plugin = {
  name: 'early',
  apply: 'build',
  buildStart() {
    this.emitFile({ type: 'chunk', id: 'src/early.ts', name: 'early' });
  },
  transformIndexHtml: {
    order: 'post',
    handler(_, { bundle = {} }) {
      const file = Object.values(bundle).find((each) => each.name === 'early')?.fileName;
      // It decides what is painted first, so it is not deferred as a module would be. It arrives
      // while the browser waits for the styles.
      return [{ tag: 'script', attrs: { src: `/${file}` }, injectTo: 'head-prepend' }];
    },
  },
};

/** The paths of screens, as in `src/router.tsx`, and the component that each of them shows. */
const screens = {
  '/signin': 'signin/SignIn',
  '/$account/reviews/$id': 'review/ReviewScreen',
  '/$account/new': 'newtask/NewTask',
  '/$account/tasks': 'tasks/Tasks',
  '/$account/tasks/$id': 'tasks/TaskScreen',
  '/$account/schedules': 'schedules/Schedules',
  '/$account/agents': 'agents/Agents',
  '/$account/agents/$name': 'agents/AgentScreen',
  '/$account/servers': 'servers/Servers',
  '/$account/servers/$id': 'servers/ServerScreen',
  '/$account/money': 'money/MoneyScreen',
  '/$account/settings/$section': 'settings/Settings',
};

/** A chunk and everything that it imports. */
function withImports(
  bundle: Rolldown.OutputBundle,
  name: string,
  found = new Set<string>(),
): Set<string> {
  const chunk = bundle[name];
  if (chunk?.type === 'chunk' && !found.has(name)) {
    found.add(name);
    for (const each of chunk.imports) withImports(bundle, each, found);
  }
  return found;
}

/**
 * Writes which files each screen needs besides those in `index.html`. The service names them in a
 * header of the page, so that the browser loads them together with the dashboard, not after it.
 */
export const screenFiles: Plugin = {
  name: 'screen-files',
  apply: 'build',
  generateBundle(_, bundle) {
    const chunks = Object.values(bundle).filter((each) => each.type === 'chunk');
    const entry = chunks.find((each) => each.isEntry && each.name === 'index');
    const always = withImports(bundle, entry?.fileName ?? '');
    const files: Record<string, string[]> = {};
    for (const [path, source] of Object.entries(screens)) {
      const chunk = chunks.find((each) =>
        each.moduleIds.some((id) => id.endsWith(`/src/${source}.tsx`)),
      );
      if (!chunk) throw new Error(`${source} is in no file. Correct its name in build.ts.`);
      const pattern = path.replace('$account', 'acct_[^/]+').replace(/\$\w+/, '[^/]+');
      files[pattern] = [...withImports(bundle, chunk.fileName)].filter((each) => !always.has(each));
    }
    this.emitFile({ type: 'asset', fileName: 'screens.json', source: JSON.stringify(files) });
  },
};

/** Compresses better than a service can while it answers. Each file gets a neighbour `.br`. */
export const compressed: Plugin = {
  name: 'compressed',
  apply: 'build',
  writeBundle({ dir = '' }, bundle) {
    for (const name of Object.keys(bundle)) {
      if (!/\.(js|css|html)$/.test(name)) continue;
      const content = readFileSync(join(dir, name));
      const params = { [constants.BROTLI_PARAM_SIZE_HINT]: content.length };
      writeFileSync(join(dir, `${name}.br`), brotliCompressSync(content, { params }));
    }
  },
};
