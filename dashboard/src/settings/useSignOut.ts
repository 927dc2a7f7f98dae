import { logout } from '@rota/sdk';
import { useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';

export function useSignOut() {
  const cache = useQueryClient();
  const navigate = useNavigate();
  return async () => {
    await logout({ throwOnError: true }).catch(() => undefined);
    cache.clear();
    navigate({ to: '/signin', search: {} });
  };
}
