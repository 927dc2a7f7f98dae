import { useParams } from '@tanstack/react-router';

const KEY = 'rota.account';

/** The account of the last visit, which `/` opens. */
export const rememberedAccount = (): string | null => localStorage.getItem(KEY);
export const rememberAccount = (id: string): void => localStorage.setItem(KEY, id);

/** The account of this page, from its URL. */
export const useAccount = (): string => useParams({ from: '/$account' }).account;
