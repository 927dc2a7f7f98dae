/** The same in a page: `rotaCall` is given a call or step, and answers through `rotaAnswer`. */
import { dispatch } from './dispatch.ts';

const page = globalThis as unknown as {
  rotaCall(text: string): void;
  rotaAnswer(answer: string): void;
};
page.rotaCall = (text) => {
  dispatch(text, (answer) => page.rotaAnswer(answer));
};
